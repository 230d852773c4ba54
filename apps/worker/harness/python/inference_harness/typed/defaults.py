# Contract 1, "Parameters and types": defaults that JSON can represent.
from __future__ import annotations

import enum
import json
from typing import Any

# The longest default that is described, in characters of JSON.
DEFAULT_LIMIT = 1024


def default_of(default: object) -> tuple[object] | None:
    """Returns the JSON value of a default in a tuple, or None if JSON cannot represent it."""
    if isinstance(default, enum.Enum):
        default = default.value
    try:
        text = json.dumps(default, allow_nan=False)
    except Exception:  # of the app's classes
        return None
    return (default,) if len(text) <= DEFAULT_LIMIT else None


def with_default(schema: dict[str, Any], default: object) -> dict[str, Any]:
    """Returns a schema with a default, if JSON can represent the default."""
    value = default_of(default)
    return schema if value is None else {**schema, "default": value[0]}
