# Contract 2, "Values that are not plain JSON": converts values for the JSON encoder, as FastAPI's
# `jsonable_encoder` does. Imports none of the libraries whose values it converts.
from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Any, Callable, Union, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import datetime
    import decimal

Converter = Callable[[Any], object]
Scalar = Union[str, int, float, None]

# Python refuses to print an integer with more digits.
MOST_DIGITS = 4300

SCALARS = (str, int, float, type(None))


def _bytes(value: bytes | bytearray | memoryview) -> str:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8: give base64 text, or declare a media type") from None


def _decimal(value: decimal.Decimal) -> float | int:
    if not value.is_finite():
        raise ValueError(f"{value} is not JSON")
    if value.adjusted() >= MOST_DIGITS:
        raise ValueError(f"has more than {MOST_DIGITS} digits")
    exponent = value.as_tuple().exponent
    return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)


def _scalar(value: Any) -> object:
    """Converts a number of numpy. A long double has no other type in Python than its own."""
    plain = value.item()
    return float(plain) if type(plain) is type(value) else plain


def _old_model(value: Any) -> object:
    """Converts a model of pydantic 1. Only its own encoder knows its `json_encoders`."""
    return json.loads(value.json(by_alias=True))


def _dataclass(cls: Any) -> Converter:
    from dataclasses import fields  # the app has imported the module

    # Strings only: a reference to the class would keep the class alive in `_converters`.
    names = [field.name for field in fields(cls)]
    return lambda value: {name: getattr(value, name) for name in names}


def _isoformat(value: datetime.date | datetime.time) -> str:
    return value.isoformat()


def _array(value: Any) -> object:
    return value.tolist()


# By the base class's module and name, because an import of all modules takes milliseconds.
CONVERTERS: dict[tuple[str, str], Converter] = {
    ("builtins", "bytes"): _bytes,
    ("builtins", "bytearray"): _bytes,
    ("builtins", "memoryview"): _bytes,
    ("builtins", "set"): list,
    ("builtins", "frozenset"): list,
    ("collections", "deque"): list,
    ("datetime", "date"): _isoformat,  # datetime is a subclass
    ("datetime", "time"): _isoformat,
    ("datetime", "timedelta"): lambda value: value.total_seconds(),
    ("decimal", "Decimal"): _decimal,
    ("uuid", "UUID"): str,
    ("pathlib", "PurePath"): str,
    ("pathlib._local", "PurePath"): str,  # Python 3.13
    ("numpy", "generic"): _scalar,
    ("numpy", "ndarray"): _array,
    ("torch", "Tensor"): _array,
}

# Weak: an app may make classes while it runs.
_converters: WeakKeyDictionary[type, Converter | None] = WeakKeyDictionary()


def converter_of(cls: type) -> Converter | None:
    """Returns the function that converts values of a class, or None if JSON has no form for it."""
    try:
        return _converters[cls]
    except KeyError:
        found = _converters[cls] = _found(cls)
        return found


def is_model(cls: type) -> bool:
    """Returns whether the class is a model of pydantic 1 or 2."""
    return any(
        base.__name__ == "BaseModel" and base.__module__ in ("pydantic.main", "pydantic.v1.main")
        for base in cls.__mro__
    )


def _found(cls: type) -> Converter | None:
    if is_model(cls):
        if hasattr(cls, "model_dump"):
            return lambda value: value.model_dump(mode="json", by_alias=True)
        return _old_model
    # `is_dataclass` would change what the type checker knows of `cls`.
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls)
    if issubclass(cls, enum.Enum):
        return lambda value: value.value
    for base in cls.__mro__:
        convert = CONVERTERS.get((base.__module__, base.__name__))
        if convert is not None:
            return convert
    return None


def default(value: object) -> object:
    """Converts a value that the JSON encoder does not know: its `default` hook.

    The encoder encodes the returned value in turn. Raises TypeError if JSON has no form for it."""
    convert = converter_of(type(value))
    if convert is None:
        raise TypeError("is not JSON")
    return convert(value)


def with_plain_keys(value: object) -> object:
    """Returns a copy of a value whose keys of dicts are strings, numbers, bools or None.

    The encoder has no hook for keys."""
    if isinstance(value, dict):
        members = cast("dict[object, object]", value).items()
        return {plain_key(key): with_plain_keys(member) for key, member in members}
    if isinstance(value, (list, tuple)):
        return [with_plain_keys(one) for one in cast("list[object]", value)]
    if isinstance(value, SCALARS):
        return value
    return with_plain_keys(default(value))


def plain_key(key: object) -> Scalar:
    """Returns the key of a JSON object for a key of a dict. Raises TypeError."""
    while not isinstance(key, SCALARS):
        key = default(key)
        if isinstance(key, (list, dict)):
            raise TypeError("is not JSON")
    return key
