# Contract 1, "Parameters and types": the parameters of one function as a schema and a conversion.
from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple, Optional

from .choices import optional
from .defaults import with_default
from .mismatch import Mismatch, Violations
from .standard import Maker
from .type import ANYTHING, Convert, Schema, Type
from .with_pydantic import Field, Model, foreign_type, is_field, is_required, merge

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
    if not is_field(default):
        return default, None
    if is_required(default):
        return inspect.Parameter.empty, default
    made = default.default_factory
    return (default.default if made is None else NO_JSON), default


# A default that is made at each call.
NO_JSON = object()


def standard_parameters(named: list[Parameter], extra: Any, maker: Maker) -> Parameters:
    """Returns the parameters, by the types of the standard library."""
    types = {one.name: _type_of(one, maker) for one in named}
    others = None if extra is None else maker.type_of(extra)
    return joined(named, types, others, maker.definitions)


def _type_of(one: Parameter, maker: Maker) -> Type:
    made = maker.type_of(one.annotation)
    return optional(made) if one.accepts_null else made


def pydantic_parameters(named: list[Parameter], extra: Any, module: Any) -> Parameters:
    """Returns the parameters, by pydantic.

    A parameter that pydantic does not understand has its type of the standard library."""

    def foreign(annotation: Any) -> Type | None:
        return foreign_type(module, annotation, maker.definitions)

    maker = Maker(foreign)
    types: dict[str, Type] = {}
    fields = [_field(one) for one in named]
    try:
        model = Model(module, fields)
    except Exception:  # pydantic has many classes of errors for annotations
        understood = [field for field in fields if _understood(module, field)]
        model = Model(module, understood)
        known = {field.name for field in understood}
        types = {one.name: _type_of(one, maker) for one in named if one.name not in known}
    others = None if extra is None else maker.type_of(extra)
    merge(maker.definitions, model.definitions)
    schemas = {name: Type(schema, None, ANYTHING.fit) for name, schema in model.schemas.items()}
    rest = joined(named, {**types, **schemas}, others, maker.definitions)

    def convert(arguments: Arguments) -> None:
        wrong: Mismatch | None = None
        try:
            model.convert(arguments)
        except Mismatch as error:
            wrong = error
        if rest.convert is not None:
            try:
                rest.convert(arguments)
            except Mismatch as error:
                wrong = Mismatch([*(wrong.violations if wrong else []), *error.violations])
        if wrong is not None:
            raise wrong

    return rest._replace(convert=convert)


def _field(one: Parameter) -> Field:
    annotation = Optional[one.annotation] if one.accepts_null else one.annotation
    return Field(one.name, annotation, one.field)


def _understood(module: Any, field: Field) -> bool:
    try:
        Model(module, [field])
    except Exception:  # pydantic has many classes of errors for annotations
        return False
    return True


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
