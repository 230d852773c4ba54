# Contract 1, "Parameters and types": the seam to pydantic 1.10 and 2. A model with a field for each
# parameter makes the schemas and converts the arguments.
from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from .mismatch import VIOLATIONS_LIMIT, Mismatch, Violation
from .pydantic_one import refuse_circles, schemas_one
from .pydantic_two import output_two, schemas_two
from .type import FITS, NO, Schema, Type


def pydantic() -> Any:
    """Returns pydantic of the app's environment, or None. The first import takes 0.1 to 0.3 s."""
    module = sys.modules.get("pydantic")
    try:
        if module is None and importlib.util.find_spec("pydantic") is not None:
            module = importlib.import_module("pydantic")
    except Exception:  # a broken installation
        return None
    return module if hasattr(module, "create_model") else None


def is_two(module: Any) -> bool:
    """Returns whether this is pydantic 2 or newer."""
    return hasattr(module, "TypeAdapter")


def is_field(default: object) -> bool:
    """Returns whether a default is made by `Field(…)` of pydantic."""
    kind = type(default)
    return kind.__name__ == "FieldInfo" and kind.__module__.startswith("pydantic.")


def is_required(field: Any) -> bool:
    """Returns whether `Field(…)` has no default."""
    if hasattr(field, "is_required"):
        return bool(field.is_required())
    no_default = field.default is Ellipsis or type(field.default).__name__ == "UndefinedType"
    return no_default and field.default_factory is None


class Field(NamedTuple):
    """A parameter whose values pydantic converts."""

    name: str
    annotation: Any
    # `Field(…)` of pydantic, or None.
    info: Any


class Model:
    """The parameters of a function as one model."""

    def __init__(self, module: Any, fields: Iterable[Field]) -> None:
        # A parameter may have a name that no field of a model can have.
        self._fields = {f"p{number}": field for number, field in enumerate(fields)}
        self._two = is_two(module)
        # A call may leave a field out. In pydantic 1, a default of None would accept null.
        left_out = None if self._two else ...
        definitions: dict[str, Any] = {
            key: (field.annotation, left_out if field.info is None else field.info)
            for key, field in self._fields.items()
        }
        if not self._two:
            for field in self._fields.values():
                refuse_circles(field.annotation)
        self._model: Any = module.create_model("Parameters", **definitions)
        self._validate = _validate_two(self._model) if self._two else _validate_one(self._model)
        found, self.definitions = (schemas_two if self._two else schemas_one)(self._model)
        self.schemas: dict[str, Schema] = {}
        for key, field in self._fields.items():
            schema = dict(found[key])
            if field.info is None:
                schema.pop("default", None)
            self.schemas[field.name] = schema

    def convert(self, arguments: dict[str, Any]) -> None:
        """Converts the arguments in place, and adds the defaults of `Field(…)`. Raises Mismatch."""
        given = {
            key: arguments[field.name]
            for key, field in self._fields.items()
            if field.name in arguments
        }
        values, error = self._validate(given)
        violations = [] if error is None else self._violations(error)
        if violations:
            raise Mismatch(violations)
        for key, field in self._fields.items():
            if key in values and (key in given or field.info is not None):
                arguments[field.name] = values[key]

    def _violations(self, error: Any) -> list[Violation]:
        found: list[Violation] = []
        options = {"include_url": False, "include_context": False, "include_input": False}
        for one in error.errors(**(options if self._two else {}))[:VIOLATIONS_LIMIT]:
            key, *rest = one["loc"]
            kind: str = one["type"]
            if not rest and kind in ("missing", "value_error.missing"):
                continue  # the names are checked before
            if kind == "value_error.missing":
                kind = "missing"
            loc = [part if isinstance(part, int) else str(part) for part in rest]
            found.append(Violation((self._fields[key].name, *loc), kind, one["msg"]))
        return found


def _validate_two(model: Any) -> Any:
    """Returns a function that returns the converted values, and the error or None."""
    wrong: Any = importlib.import_module("pydantic").ValidationError

    def validate(given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        try:
            return model.model_validate(given).__dict__, None
        except wrong as error:
            return {}, error

    return validate


def _validate_one(model: Any) -> Any:
    """Returns a function that returns the converted values, and the error or None."""
    validate_model: Any = importlib.import_module("pydantic").validate_model

    def validate(given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        values, _, error = validate_model(model, given)
        return values, error

    return validate


def foreign_type(module: Any, annotation: Any, definitions: dict[str, Schema]) -> Type | None:
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


def merge(definitions: dict[str, Schema], more: dict[str, Schema]) -> None:
    """Adds definitions. Raises ValueError if two classes have the same name."""
    for name, schema in more.items():
        if definitions.setdefault(name, schema) != schema:
            raise ValueError(f"two classes that contain themselves have the name {name}")


def output_schema(module: Any, annotation: Any) -> Schema | None:
    """Returns the schema of a result or an item, or None if pydantic cannot make it."""
    try:
        if is_two(module):
            return output_two(module, annotation)
        model = Model(module, [Field("value", annotation, None)])
    except Exception:  # pydantic has many classes of errors for annotations
        return None
    schema = model.schemas["value"]
    return {**schema, "$defs": model.definitions} if model.definitions else schema
