# Contract 2: encodes a function's output once, as the JSON text that callers receive.
import json

_encode_text = json.encoder.encode_basestring


def _refuse(value):
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _encoder():
    """Returns the C encoder behind json.dumps. json.dumps makes an encoder for every call, which costs more than encoding a small value.

    The first argument, None, disables the tracking of circles. A circular value then ends in a RecursionError."""
    make = json.encoder.c_make_encoder
    if make is None:
        return json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
    parts = make(None, _refuse, _encode_text, None, ":", ",", False, False, False)
    return lambda value: "".join(parts(value, 0))


_encode = _encoder()

BINARY_KINDS = (bytes, bytearray, memoryview)


class OutputError(Exception):
    """A result or an item that cannot be sent."""

    code = "internal"


class Unserializable(OutputError):
    code = "unserializable_output"


class TooLarge(OutputError):
    code = "output_too_large"


def encode(value):
    """Returns compact JSON text of `value`. Raises Unserializable."""
    try:
        return _encode(value)
    except Exception as error:  # includes exceptions that an app's dict or list subclass raises while it is read
        raise Unserializable(_reason(value, error)) from None


def _reason(value, error):
    if isinstance(value, BINARY_KINDS):
        return f"{type(value).__name__} is not JSON: give base64 text instead"
    if "type bytes" in str(error):
        return "bytes are not JSON: give base64 text instead"
    if isinstance(error, RecursionError):
        return "the output is nested too deeply"
    return f"the output is not JSON: {error}"


def json_bytes(text):
    """Returns the UTF-8 of JSON text. A lone surrogate, which has no UTF-8, becomes its `\\udXXX` escape."""
    return text.encode("utf-8", "backslashreplace")


def string_bytes(text):
    """Returns the UTF-8 of a string item. A lone surrogate becomes U+FFFD."""
    return text.encode("utf-8", "harness-replace")


def status_code(result):
    """Returns the HTTP status that a result sets by `status_code`, or None."""
    if not isinstance(result, dict):
        return None
    status = result.get("status_code")
    if type(status) is int and 200 <= status <= 599 and status not in (204, 205, 304):
        return status
    return None
