# Contract 1, "Parameters and types": the parameters of a function by the standard library. An app
# whose functions have no annotations starts without this module.
from __future__ import annotations

from typing import Any

from .choices import optional
from .parameters import Parameter, Parameters, joined
from .standard import Maker
from .type import Type


def standard_parameters(named: list[Parameter], extra: Any) -> Parameters:
    """Returns the parameters, by the types of the standard library."""
    maker = Maker()
    types = {one.name: type_of(one, maker) for one in named}
    others = None if extra is None else maker.type_of(extra)
    return joined(named, types, others, maker.definitions)


def type_of(one: Parameter, maker: Maker) -> Type:
    """Returns the type of a parameter."""
    made = maker.type_of(one.annotation)
    return optional(made) if one.accepts_null else made
