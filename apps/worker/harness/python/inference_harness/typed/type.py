# Contract 1, "Parameters and types": a type as the service sees it.
from __future__ import annotations

from typing import Any, Callable, NamedTuple

# A JSON Schema, draft 2020-12.
Schema = dict[str, Any]
# Returns the converted value. Raises Mismatch.
Convert = Callable[[Any], Any]

# How a value fits a member of a union. A union first tries the members that fit exactly.
EXACT, FITS, NO = 2, 1, 0

# The violation of a value that has the JSON type of no member of a union.
NO_MEMBER = ("union_type", "Input should match one of the allowed types")


class Type(NamedTuple):
    """The schema of the accepted JSON values, and their conversion."""

    schema: Schema
    # None: every value is accepted and passed unchanged.
    convert: Convert | None
    # Returns EXACT, FITS or NO, by the JSON type of a value.
    fit: Callable[[object], int]


def of_json(exact: tuple[type, ...] = (), fits: tuple[type, ...] = ()) -> Callable[[object], int]:
    """Returns a function that rates how well a value fits, by its class."""

    def fit(value: object) -> int:
        kind = type(value)
        return EXACT if kind in exact else FITS if kind in fits else NO

    return fit


def _fits(_value: object) -> int:
    return FITS


# An annotation that the service does not understand.
ANYTHING = Type({}, None, _fits)
