# Contract 2: what a function gives back, as the JSON text that callers will see, encoded once, here.
import json

_options = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
_encode_with_checks = json.JSONEncoder(**_options).encode

STRING_KINDS = (str,)
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
        return _encode_with_checks(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unserializable(_reason(value, error)) from None


def _reason(value, error):
    if isinstance(value, BINARY_KINDS):
        return f"{type(value).__name__} is not JSON: give base64 text instead"
    if "bytes is not JSON" in str(error) or "bytes" in str(error) and "serializable" in str(error):
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
