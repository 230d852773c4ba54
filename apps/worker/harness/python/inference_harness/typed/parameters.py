# Contract 1, "Parameters and types": the parameters of one function as a schema and a conversion.
from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple, cast

from .defaults import with_default
from .mismatch import Mismatch, Violations
from .type import ANYTHING, Convert, Schema, Type

Arguments = dict[str, Any]

# A parameter of this name receives the run's id, unless the caller sends a value.
RUN_ID = "run_id"


class Parameters(NamedTuple):
    """The accepted arguments of a function."""

    schema: Schema
    # Names that a call must send, except for `run_id`.
    required: list[str]
    # Converts the arguments in place. Raises Mismatch. None: nothing is converted.
    convert: Callable[[Arguments], None] | None


class Parameter(NamedTuple):
    """One named parameter."""

    name: str
    annotation: Any
    # `inspect.Parameter.empty`: a call must send it.
    default: object
    # `Field(…)` of pydantic, if this is the default.
    field: Any
    description: str | None

    @property
    def accepts_null(self) -> bool:
        """Returns whether the default is None."""
        return self.default is None


def parameters_of(
    signature: inspect.Signature, hints: dict[str, Any], descriptions: dict[str, str]
) -> tuple[list[Parameter], Any]:
    """Returns the named parameters, and the annotation of `**kwargs` or None."""
    named: list[Parameter] = []
    extra: Any = None
    for one in signature.parameters.values():
        hint = hints.get(one.name, Any)
        if one.kind is one.VAR_KEYWORD:
            extra = hint
        elif one.kind is not one.VAR_POSITIONAL:
            default, field = _default_of(one.default)
            named.append(Parameter(one.name, hint, default, field, descriptions.get(one.name)))
    return named, extra


def _default_of(default: Any) -> tuple[object, Any]:
    """Returns the default of a parameter, and its `Field(…)` or None."""
    kind = cast("type[Any]", type(default))
    if kind.__name__ != "FieldInfo" or not kind.__module__.startswith("pydantic."):
        return default, None
    from .with_pydantic import is_required

    if is_required(default):
        return inspect.Parameter.empty, default
    made = default.default_factory
    return (default.default if made is None else NO_JSON), default


# A default that is made at each call.
NO_JSON = object()


def joined(
    named: list[Parameter], types: dict[str, Type], others: Type | None, definitions: Any
) -> Parameters:
    """Returns the parameters that have these types. `others` is the type of further arguments."""
    properties: Schema = {}
    for one in named:
        part = types[one.name].schema
        if one.description is not None and "description" not in part:
            part = {**part, "description": one.description}
        if one.default is not inspect.Parameter.empty and "default" not in part:
            part = with_default(part, one.default)
        properties[one.name] = part
    required = [
        one.name for one in named if one.default is inspect.Parameter.empty and one.name != RUN_ID
    ]
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    if others is None:
        schema["additionalProperties"] = False
    elif others.schema:
        schema["additionalProperties"] = others.schema
    if definitions:
        schema["$defs"] = definitions
    converts = {name: one.convert for name, one in types.items() if one.convert is not None}
    known = frozenset(types)
    other = None if others is None else others.convert
    return Parameters(schema, required, conversion(converts, known, other))


def conversion(
    converts: dict[str, Convert], known: frozenset[str], other: Convert | None
) -> Callable[[Arguments], None] | None:
    """Returns the conversion of arguments in place, or None if nothing is converted."""
    if not converts and other is None:
        return None
    listed = list(converts.items())

    def convert(arguments: Arguments) -> None:
        wrong: Violations | None = None
        for name, one in listed:
            if name in arguments:
                try:
                    arguments[name] = one(arguments[name])
                except Mismatch as error:
                    wrong = wrong or Violations()
                    wrong.add(name, error)
        if other is not None:
            for name in [name for name in arguments if name not in known]:
                try:
                    arguments[name] = other(arguments[name])
                except Mismatch as error:
                    wrong = wrong or Violations()
                    wrong.add(name, error)
        if wrong is not None:
            wrong.check()

    return convert


def unchecked(named: list[Parameter], extra: Any) -> Parameters:
    """Returns parameters that accept every value: `[runtime] validate = false`."""
    types = {one.name: ANYTHING for one in named}
    return joined(named, types, None if extra is None else ANYTHING, {})
