# Contract 1, "Parameters and types": how the arguments of a call are bound.
import json

from inference_harness.failures import Refused
from inference_harness.functions import Function
from parts import raised


def called(function, **arguments):
    """Returns the result of a call with these parameters."""
    call, bound = Function("f", function).bound(json.dumps(arguments).encode(), "the-run")
    return call(**bound)


def test_parameters_are_passed_by_name():
    assert called(lambda a, b=2: (a, b), a=1) == (1, 2)
    assert called(lambda **more: more, a=1) == {"a": 1}


def test_no_body_counts_as_no_parameters():
    call, bound = Function("f", lambda: "called").bound(b"", "the-run")
    assert call(**bound) == "called"


def test_positional_only_parameters_are_passed_by_position():
    def function(a, b=2, /, c=3):
        return (a, b, c)

    assert called(function, a=1) == (1, 2, 3)
    assert called(function, c=30, b=20, a=10) == (10, 20, 30)


def test_the_run_id_is_filled_in_unless_the_caller_sent_one():
    assert called(lambda run_id: run_id) == "the-run"
    assert called(lambda run_id: run_id, run_id="mine") == "mine"


def test_every_wrong_parameter_is_named():
    error = raised(Refused, lambda: called(lambda a, b: None, b=1, c=2))
    assert error.code == "invalid_input"
    assert [(one["loc"][1], one["type"]) for one in error.details] == [
        ("a", "missing"),
        ("c", "unexpected"),
    ]


def test_parameters_that_are_no_json_object_are_refused():
    for body in (b"[1]", b"{", b"\xff", b"[" * 100_000):
        error = raised(Refused, Function("f", print).bound, body, "the-run")
        assert error.code == "invalid_input", body
