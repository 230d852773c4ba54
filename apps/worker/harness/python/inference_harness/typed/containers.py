# Contract 1, "Parameters and types": lists, sets, tuples and dictionaries.
from __future__ import annotations

from typing import Any, Callable

from .mismatch import Mismatch, Violations, mismatch
from .type import Convert, Schema, Type, of_json


def _items_of(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise mismatch("list_type", "Input should be a valid list")


def members_of(value: Any) -> dict[str, Any]:
    """Returns a JSON object. Raises Mismatch."""
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType]
    raise mismatch("dict_type", "Input should be a valid object")


def converted(items: list[Any], convert: Convert) -> list[Any]:
    """Returns the converted items. Raises Mismatch with the violations of all items."""
    made: list[Any] = []
    wrong = Violations()
    for index, item in enumerate(items):
        try:
            made.append(convert(item))
        except Mismatch as error:
            wrong.add(index, error)
    wrong.check()
    return made


def sequence(item: Type, make: Callable[[list[Any]], object]) -> Type:
    """Returns the type of a list, or of what `make` returns for a list."""
    schema: Schema = {"type": "array"}
    if item.schema:
        schema["items"] = item.schema

    def convert(value: Any) -> Any:
        items = _items_of(value)
        made = items if item.convert is None else converted(items, item.convert)
        try:
            return made if make is list else make(made)
        except TypeError:
            raise mismatch("set_item_not_hashable", "Set items should be hashable") from None

    return Type(schema, convert, of_json(*(((list,), ()) if make is list else ((), (list,)))))


def row(
    items: list[Type], make: Callable[[list[Any]], object], required: int | None = None
) -> Type:
    """Returns the type of a tuple with a type for each place.

    `required` is the number of places that have no default."""
    least = len(items) if required is None else required
    most = len(items)
    schema: Schema = {
        "type": "array",
        "prefixItems": [item.schema for item in items],
        "minItems": least,
        "maxItems": most,
    }

    def convert(value: Any) -> Any:
        given = _items_of(value)
        if len(given) < least:
            raise mismatch("too_short", f"Input should have at least {_items(least)}")
        if len(given) > most:
            raise mismatch("too_long", f"Input should have at most {_items(most)}")
        wrong = Violations()
        made: list[Any] = []
        for index, (item, one) in enumerate(zip(items, given)):
            try:
                made.append(one if item.convert is None else item.convert(one))
            except Mismatch as error:
                wrong.add(index, error)
        wrong.check()
        return make(made)

    return Type(schema, convert, of_json((), (list,)))


def _items(number: int) -> str:
    return f"{number} item" if number == 1 else f"{number} items"


def mapping(key: Type, value: Type) -> Type:
    """Returns the type of a dictionary. The keys of JSON objects are texts."""
    schema: Schema = {"type": "object"}
    if value.schema:
        schema["additionalProperties"] = value.schema
    names = {name: part for name, part in key.schema.items() if name in ("format", "enum")}
    if names:
        schema["propertyNames"] = names
    plain_keys = key.convert is None or key.schema == {"type": "string"}

    def convert(given: Any) -> Any:
        members = members_of(given)
        if plain_keys and value.convert is None:
            return members
        wrong = Violations()
        made: dict[Any, Any] = {}
        for name, member in members.items():
            try:
                known = name if plain_keys or key.convert is None else _key(key, key.convert, name)
                made[known] = member if value.convert is None else value.convert(member)
            except Mismatch as error:
                wrong.add(name, error)
        wrong.check()
        return made

    return Type(schema, convert, of_json((dict,)))


def _key(key: Type, convert: Convert, name: str) -> object:
    """Returns a converted key. The text of a number is that number here."""
    if key.fit(name):
        return convert(name)
    for read in (int, float, _boolean):
        try:
            return convert(read(name))
        except (ValueError, KeyError, Mismatch):
            pass
    return convert(name)


def _boolean(name: str) -> bool:
    return {"true": True, "false": False}[name]
