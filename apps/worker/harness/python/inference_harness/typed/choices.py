# Contract 1, "Parameters and types": Enum, Literal and Union.
from __future__ import annotations

import json
from typing import Any

from .mismatch import Mismatch, Violation, mismatch
from .plain import NULL
from .type import ANYTHING, EXACT, FITS, NO, NO_MEMBER, Schema, Type

_NAMES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def one_of(values: list[tuple[Any, object]]) -> Type | None:
    """Returns a type of some JSON values. The second value of a pair is what the function sees.

    Returns None if a value is no text, number, boolean or null."""
    seen: dict[tuple[bool, Any], object] = {}
    kinds: set[type] = set()
    for value, meaning in values:
        if not isinstance(value, (str, int, float, type(None))):
            return None
        seen.setdefault(_key(value), meaning)
        kinds.add(next(kind for kind in (str, bool, int, float, object) if isinstance(value, kind)))
    listed = [value for _, value in seen]
    schema: Schema = {"enum": listed}
    if len(kinds) == 1:
        name = _NAMES.get(kinds.pop())
        if name is not None:
            schema["type"] = name
    texts = [json.dumps(value, ensure_ascii=False) for value in listed]
    named = " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1] if texts else ""]))

    def convert(value: Any) -> Any:
        if isinstance(value, (str, int, float, type(None))):
            key = _key(value)
            if key in seen:
                return seen[key]
        raise mismatch("enum", f"Input should be {named}")

    def fit(value: object) -> int:
        if isinstance(value, (str, int, float, type(None))) and _key(value) in seen:
            return EXACT
        return FITS if type(value) in kinds else NO

    return Type(schema, convert, fit)


def _key(value: Any) -> tuple[bool, Any]:
    """Returns a key that keeps true and 1 apart. JSON Schema counts 1 and 1.0 as equal."""
    if isinstance(value, str):
        return False, str(value)
    return isinstance(value, bool), value


def union(members: list[Type]) -> Type:
    """Returns a type that accepts the values of all members.

    The members that fit a value exactly are tried first."""
    if any(member.convert is None for member in members):
        members = [member for member in members if member.convert is not None] + [ANYTHING]
    unlike_null = [member for member in members if member is not NULL]

    def convert(value: Any) -> Any:
        found: list[Violation] = []
        for level in (EXACT, FITS):
            for member in members:
                if member.fit(value) != level:
                    continue
                if member.convert is None:
                    return value
                try:
                    return member.convert(value)
                except Mismatch as error:
                    found += error.violations
        if found:
            raise Mismatch(found)
        if len(unlike_null) == 1 and unlike_null[0].convert is not None:
            return unlike_null[0].convert(value)  # raises its own Mismatch
        raise mismatch(*NO_MEMBER)

    schemas: list[Schema] = []
    for member in members:
        # A union of unions is flat.
        inner = member.schema.get("anyOf") if member.schema.keys() == {"anyOf"} else None
        schemas += [one for one in inner or [member.schema] if one not in schemas]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def fit(value: object) -> int:
        return max(member.fit(value) for member in members)

    return Type(schema, convert, fit)


def optional(inner: Type) -> Type:
    """Returns a type that accepts null too."""
    if inner.convert is None or (inner.fit(None) == EXACT):
        return inner
    return union([inner, NULL])
