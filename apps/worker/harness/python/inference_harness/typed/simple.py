# Contract 1, "Parameters and types": annotations that need no pydantic. The schemas and the values
# are the same with and without pydantic, whose import takes 0.1 to 0.3 s.
from __future__ import annotations

import inspect
import typing
from typing import Any

from .plain import PLAIN

_CONTAINERS = (list, dict, tuple, set, frozenset)
_SCALARS = frozenset(
    (
        ("datetime", "date"),
        ("datetime", "time"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("uuid", "UUID"),
        ("decimal", "Decimal"),
        ("builtins", "bytes"),
    )
)


def is_simple(annotation: Any) -> bool:
    """Returns whether an annotation consists of plain types and scalars of the standard library."""
    if annotation is Any or annotation is inspect.Parameter.empty or annotation is Ellipsis:
        return True
    origin = typing.get_origin(annotation)
    if origin is None:
        return _is_simple_class(annotation)
    name = getattr(origin, "__name__", None) or getattr(origin, "_name", "")
    if name == "Literal":
        return all(type(one) in (str, int, bool, type(None)) for one in typing.get_args(annotation))
    if origin in _CONTAINERS or origin is typing.Union or name == "UnionType":
        return all(is_simple(one) for one in typing.get_args(annotation))
    return False


def _is_simple_class(annotation: Any) -> bool:
    try:
        if annotation in PLAIN or annotation in _CONTAINERS:
            return True
    except TypeError:  # unhashable
        return False
    if not isinstance(annotation, type):
        return False
    return (annotation.__module__, annotation.__qualname__) in _SCALARS
