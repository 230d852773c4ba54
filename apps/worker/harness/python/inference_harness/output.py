# Contract 2: encodes a function's output once, as the JSON text that callers receive.
from __future__ import annotations

import json
from typing import Any, Callable, cast

from .jsonable import converter_of, default, with_plain_keys
from .position import problem_of

_encode_text = json.encoder.encode_basestring


def _encoder() -> Callable[[object], str]:
    """Returns the C encoder behind json.dumps.

    json.dumps makes an encoder for every call, which costs more than encoding a small value. The
    first argument, None, disables the tracking of circles. A circular value then ends in a
    RecursionError. The encoder calls `default` only for values that are not JSON already."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=default
        ).encode
    parts = make(None, default, _encode_text, None, ":", ",", False, False, False)
    return lambda value: "".join(parts(value, 0))


_encode = _encoder()

# The JSON values that the encoder knows, by their exact class.
PLAIN = frozenset((str, dict, list, tuple, int, float, bool, type(None)))

# The encoder also encodes their subclasses by itself.
SUBCLASSED = (str, dict, list, tuple, int, float)


class OutputError(Exception):
    """A result or an item that cannot be sent."""

    code = "internal"


class Unserializable(OutputError):
    """An output that JSON cannot represent."""

    code = "unserializable_output"


class TooLarge(OutputError):
    """An output over a limit."""

    code = "output_too_large"


def encode(value: object, root: str = "item") -> str:
    """Returns compact JSON text of `value`. Raises Unserializable.

    `root` names the value in the error's message."""
    try:
        return _encode(value)
    except Exception as error:  # also what an app's own class raises while it is read
        failure = error
    if isinstance(failure, TypeError) and str(failure).startswith("keys must be"):
        try:
            return _encode(with_plain_keys(value))
        except Exception as error:
            failure = error
    raise Unserializable(_reason(value, root, failure)) from None


def encode_result(result: object) -> tuple[str, int | None]:
    """Returns JSON text of a result, and the HTTP status that it sets. Raises Unserializable."""
    if type(result) in PLAIN:
        return encode(result, "result"), status_code(result)
    convert = None if issubclass(type(result), SUBCLASSED) else converter_of(type(result))
    if convert is None:
        return encode(result, "result"), status_code(result)
    try:
        plain = convert(result)
        return encode(plain, "result"), status_code(plain)
    except Exception as error:
        failure = error
    raise Unserializable(_reason(result, "result", failure))


def _reason(value: object, root: str, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the output is nested too deeply"
    try:
        problem = problem_of(value, root)
    except Exception:  # an app's own class raises while it is read
        problem = None
    if problem is None:
        return f"{root}: {type(value).__name__} is not JSON: {error}"
    if problem.startswith(f"{root}: "):
        return problem
    return f"{problem}; the {root} is of type {type(value).__name__}"


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
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    if 200 <= status <= 599 and status not in (204, 205, 304):
        return int(status)
    return None
