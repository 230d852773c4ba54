# Contract 1, "Parameters and types": replaces references to definitions by the definitions.
from __future__ import annotations

from typing import Any, cast

from .type import Schema

PREFIX = "#/$defs/"


def inlined(schema: Any, definitions: dict[str, Schema]) -> tuple[Any, dict[str, Schema]]:
    """Returns a schema without references, except to definitions that contain themselves.

    Returns these definitions too."""
    recursive = {name for name in definitions if _reaches(name, definitions)}
    made: dict[str, Any] = {}

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(item) for item in cast("list[Any]", part)]
        if not isinstance(part, dict):
            return part
        members = cast("dict[str, Any]", part)
        name = _target(members)
        if name is None or name in recursive or name not in definitions:
            return {key: inline(value) for key, value in members.items()}
        if name not in made:
            made[name] = inline(definitions[name])
        rest = {key: inline(value) for key, value in members.items() if key != "$ref"}
        return {**made[name], **rest} if rest else made[name]

    kept = {name: inline(definitions[name]) for name in definitions if name in recursive}
    return inline(schema), kept


def _target(members: dict[str, Any]) -> str | None:
    reference = members.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(PREFIX):
        return None
    return reference[len(PREFIX) :].replace("~1", "/").replace("~0", "~")


def _reaches(name: str, definitions: dict[str, Schema]) -> bool:
    """Returns whether a definition contains itself, directly or indirectly."""
    seen: set[str] = set()
    search: list[Any] = [definitions[name]]
    while search:
        part = search.pop()
        if isinstance(part, list):
            search += cast("list[Any]", part)
        elif isinstance(part, dict):
            members = cast("dict[str, Any]", part)
            target = _target(members)
            if target == name:
                return True
            if target is not None and target in definitions and target not in seen:
                seen.add(target)
                search.append(definitions[target])
            search += members.values()
    return False


def merge(definitions: dict[str, Schema], more: dict[str, Schema]) -> None:
    """Adds definitions. Raises ValueError if two classes have the same name."""
    for name, schema in more.items():
        if definitions.setdefault(name, schema) != schema:
            raise ValueError(f"two classes that contain themselves have the name {name}")
