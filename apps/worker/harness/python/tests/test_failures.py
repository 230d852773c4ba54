# Contract 2, "Errors": the fields of an `error` message.
from inference_harness.failures import Refused, error_fields, formatted, message_of
from inference_harness.output import TooLarge


class HttpError(Exception):
    def __init__(self, **fields):
        super().__init__("the text")
        self.__dict__.update(fields)


def caught(work):
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_refused_call_has_its_code_and_details():
    details = [{"loc": ["body", "a"], "msg": "Field required", "type": "missing"}]
    error = Refused("invalid_input", "wrong", details)
    expected = {"code": "invalid_input", "message": "wrong", "details": details}
    assert error_fields(error, True) == expected
    assert error_fields(Refused("not_found", "none"), True) == {
        "code": "not_found",
        "message": "none",
    }


def test_an_output_error_has_its_code():
    expected = {"code": "output_too_large", "message": "too large"}
    assert error_fields(TooLarge("too large"), True) == expected


def test_only_debug_sends_the_traceback():
    error = caught(lambda: 1 // 0)
    fields = error_fields(error, False)
    assert (fields["code"], fields["type"]) == ("function_error", "ZeroDivisionError")
    assert "traceback" not in fields
    assert error_fields(error, True)["traceback"].endswith(f"ZeroDivisionError: {error}\n")


def test_an_http_status_and_its_retry_after_are_passed_on():
    error = HttpError(status_code=429, detail={"a": 1}, headers={"Retry-After": 7})
    fields = error_fields(error, False)
    assert (fields["status"], fields["message"], fields["retry_after"]) == (429, '{"a":1}', "7")
    for wrong in (True, 399, 600, "404"):
        assert "status" not in error_fields(HttpError(status_code=wrong), False)
    for headers in ({"retry-after": "soon"}, {"retry-after": "1\r\nX: y"}, "7", None):
        assert "retry_after" not in error_fields(HttpError(status_code=503, headers=headers), False)


def test_an_exception_without_text_has_a_message():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    assert message_of(Mute()) == "(the exception has no text)"
    assert "Mute" in formatted(Mute())


def test_a_long_text_is_cut():
    assert len(message_of(ValueError("x" * 100_000))) == 16 * 1024
    assert len(formatted(ValueError("x" * 100_000))) == 16 * 1024
