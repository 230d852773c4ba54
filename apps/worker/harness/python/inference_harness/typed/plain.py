# Contract 1, "Parameters and types": the types that JSON has too.
from __future__ import annotations

from typing import Any

from .mismatch import mismatch
from .type import Type, of_json


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value
    raise mismatch("string_type", "Input should be a valid string")


def _integer(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float:
        # JSON Schema counts 1.0 as an integer.
        if value.is_integer():
            return int(value)
        text = "Input should be a valid integer, got a number with a fractional part"
        raise mismatch("int_from_float", text)
    raise mismatch("int_type", "Input should be a valid integer")


def _number(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            pass
    raise mismatch("float_type", "Input should be a valid number")


def _boolean(value: Any) -> Any:
    if value is True or value is False:
        return value
    raise mismatch("bool_type", "Input should be a valid boolean")


def _null(value: Any) -> Any:
    if value is None:
        return None
    raise mismatch("none_required", "Input should be null")


TEXT = Type({"type": "string"}, _text, of_json((str,)))
NULL = Type({"type": "null"}, _null, of_json((type(None),)))

PLAIN: dict[object, Type] = {
    str: TEXT,
    int: Type({"type": "integer"}, _integer, of_json((int,), (float,))),
    float: Type({"type": "number"}, _number, of_json((float,), (int,))),
    bool: Type({"type": "boolean"}, _boolean, of_json((bool,))),
    type(None): NULL,
    None: NULL,
}
