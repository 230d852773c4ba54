# Contract 2, "Values that are not plain JSON": finds the part of an output that JSON cannot
# represent. Runs only after the encoder has failed.
from __future__ import annotations

import json
import math
from typing import cast

from .jsonable import default, is_model, plain_key

PLACE_LIMIT = 500
NAME_LIMIT = 100


def problem_of(value: object, root: str) -> str | None:
    """Returns place, type and reason, such as `result.items[3].when: complex is not JSON`.

    Returns None if every part of the value can be encoded."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, int):
        return _of_int(value, root)
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return _described(root, value, f"{float(value)} is not JSON")
    if isinstance(value, dict):
        return _of_members(cast("dict[object, object]", value), root)
    if isinstance(value, (list, tuple)):
        for number, one in enumerate(cast("list[object]", value)):
            found = problem_of(one, f"{root}[{number}]")
            if found is not None:
                return found
        return None
    try:
        plain = default(value)
    except Exception as error:
        return _of_model(value, root) or _described(root, value, str(error))
    return problem_of(plain, root)


def _of_int(value: int, root: str) -> str | None:
    try:
        int.__repr__(value)
    except ValueError:  # Python bounds the digits
        return _described(root, value, "has too many digits")
    return None


def _of_members(members: dict[object, object], root: str) -> str | None:
    for key, value in members.items():
        try:
            name = plain_key(key)
        except Exception as error:
            return _described(f"a key of {root}", key, str(error))
        if isinstance(name, float) and not math.isfinite(name):
            return _described(f"a key of {root}", key, f"{name} is not JSON")
        found = problem_of(value, root + _step(name))
        if found is not None:
            return found
    return None


def _of_model(value: object, root: str) -> str | None:
    """Returns the problem of a model's field. Pydantic's own error does not name the field."""
    if not is_model(type(value)):
        return None
    return _of_members(cast("dict[object, object]", vars(value)), root)


def _step(name: object) -> str:
    text = str(name)
    if text.isidentifier() and len(text) <= NAME_LIMIT:
        return f".{text}"
    return f"[{json.dumps(text[:NAME_LIMIT], ensure_ascii=False)}]"


def _described(place: str, value: object, reason: str) -> str:
    if len(place) > PLACE_LIMIT:
        place = f"{place[:PLACE_LIMIT]}…"
    return f"{place}: {type(value).__name__} {reason}"
