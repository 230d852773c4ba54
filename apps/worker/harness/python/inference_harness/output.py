# Contract 2: what a function gives back, as the JSON text that callers will see, encoded once, here.
import json

_encode_text = json.encoder.encode_basestring


def _refuse(value):
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _encoder():
    """The C encoder behind json.dumps, made once: json.dumps makes one for every call, which costs more than a small value does.

    Without its notes on what it is in (the first argument) a circle ends in a RecursionError."""
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
    """Compact JSON text of `value`."""
    try:
        return _encode(value)
    except Exception as error:  # also what an app's own dict or list raises when it is read
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
    """UTF-8 of JSON text; a lone surrogate, which has no UTF-8, becomes its `\\udXXX` escape."""
    return text.encode("utf-8", "backslashreplace")


def string_bytes(text):
    """UTF-8 of a string item; a lone surrogate becomes U+FFFD."""
    return text.encode("utf-8", "harness-replace")


def status_code(result):
    """The HTTP status that a result asks for, or None."""
    if not isinstance(result, dict):
        return None
    status = result.get("status_code")
    if type(status) is int and 200 <= status <= 599 and status not in (204, 205, 304):
        return status
    return None
