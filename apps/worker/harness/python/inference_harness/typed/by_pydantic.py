# Contract 1, "Parameters and types": the parameters of a function by pydantic of its environment.
from __future__ import annotations

from typing import Any, Optional

from .by_standard import type_of
from .mismatch import Mismatch, Violation
from .parameters import Arguments, Parameter, Parameters, joined
from .references import merge
from .standard import Maker
from .type import ANYTHING, FITS, NO, Schema, Type
from .with_pydantic import Field, Model


def pydantic_parameters(named: list[Parameter], extra: Any, module: Any) -> Parameters:
    """Returns the parameters, by pydantic.

    A parameter that pydantic does not understand has its type of the standard library."""

    def foreign(annotation: Any) -> Type | None:
        return _foreign_type(module, annotation, maker.definitions)

    maker = Maker(foreign)
    types: dict[str, Type] = {}
    fields = [_field(one) for one in named]
    try:
        model = Model(module, fields)
    except Exception:  # pydantic has many classes of errors for annotations
        understood = [field for field in fields if _understood(module, field)]
        model = Model(module, understood)
        known = {field.name for field in understood}
        types = {one.name: type_of(one, maker) for one in named if one.name not in known}
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


def _foreign_type(module: Any, annotation: Any, definitions: dict[str, Schema]) -> Type | None:
    """Returns the type of an annotation that pydantic understands, else None.

    Adds the classes that contain themselves to `definitions`."""
    name = "value"
    try:
        model = Model(module, [Field(name, annotation, None)])
    except Exception:  # pydantic has many classes of errors for annotations
        return None
    merge(definitions, model.definitions)

    def convert(value: Any) -> Any:
        arguments = {name: value}
        try:
            model.convert(arguments)
        except Mismatch as error:
            raise Mismatch(
                [Violation(one.loc[1:], one.kind, one.text) for one in error.violations]
            ) from None
        return arguments[name]

    def fit(value: object) -> int:
        return NO if value is None else FITS

    return Type(model.schemas[name], convert, fit)
