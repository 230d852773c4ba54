# Contract 2: encodes a function's output once, as the JSON text that callers receive.
from __future__ import annotations

import json
from typing import Any, Callable, NoReturn, cast

_encode_text = json.encoder.encode_basestring


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _encoder() -> Callable[[object], str]:
    """Returns the C encoder behind json.dumps.

    json.dumps makes an encoder for every call, which costs more than encoding a small value. The
    first
    argument, None, disables the tracking of circles. A circular value then ends in a
    RecursionError."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
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
    """An output that JSON cannot represent."""

    code = "unserializable_output"


class TooLarge(OutputError):
    """An output over a limit."""

    code = "output_too_large"


def encode(value: object) -> str:
    """Returns compact JSON text of `value`. Raises Unserializable."""
    try:
        return _encode(value)
    except Exception as error:  # also what an app's dict or list subclass raises while it is read
        raise Unserializable(_reason(value, error)) from None


def _reason(value: object, error: Exception) -> str:
    kind = type(value).__name__
    if isinstance(value, BINARY_KINDS):
        return f"{kind} is not JSON: give base64 text instead"
    if "type bytes" in str(error):
        return "bytes are not JSON: give base64 text instead"
    if isinstance(error, RecursionError):
        return "the output is nested too deeply"
    return f"the output is not JSON: {error}"


def json_bytes(text: str) -> bytes:
    """Returns the UTF-8 of JSON text.

    A lone surrogate, which has no UTF-8, becomes its `\\udXXX` escape."""
    return text.encode("utf-8", "backslashreplace")


def string_bytes(text: str) -> bytes:
    """Returns the UTF-8 of a string item. A lone surrogate becomes U+FFFD."""
    return text.encode("utf-8", "harness-replace")


def status_code(result: object) -> int | None:
    """Returns the HTTP status that a result sets by `status_code`, or None."""
    if not isinstance(result, dict):
        return None
    status = cast("dict[object, object]", result).get("status_code")
    if type(status) is int and 200 <= status <= 599 and status not in (204, 205, 304):
        return status
    return None
