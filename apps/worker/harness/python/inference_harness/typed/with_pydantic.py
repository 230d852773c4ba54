# Contract 1, "Parameters and types": the seam to pydantic 1.10 and 2. A model with a field for each
# parameter makes the schemas and converts the arguments. The gateway must accept every value that
# the process converts, so some schemas are wider than the schemas of pydantic.
from __future__ import annotations

import datetime
import decimal
import enum
import functools
import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from .choices import one_of
from .classes import is_named_tuple
from .defaults import with_default
from .mismatch import VIOLATIONS_LIMIT, Mismatch, Violation
from .references import PREFIX, inlined
from .scalars import SCALARS
from .type import Schema

# The schemas of a model's fields, and the definitions of classes that contain themselves.
Schemas = tuple[dict[str, Schema], dict[str, Schema]]


def pydantic() -> Any:
    """Returns pydantic of the app's environment, or None. The first import takes 0.1 to 0.3 s."""
    module = sys.modules.get("pydantic")
    try:
        if module is None and importlib.util.find_spec("pydantic") is not None:
            module = importlib.import_module("pydantic")
    except Exception:  # a broken installation
        return None
    return module if hasattr(module, "create_model") else None


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
        self._module = module
        self._two = _is_two(module)
        # A call may leave a field out. In pydantic 1, a default of None would accept null.
        left_out = None if self._two else ...
        definitions: dict[str, Any] = {}
        for key, field in self._fields.items():
            definitions[key] = field.annotation, left_out if field.info is None else field.info
            if not self._two:
                _refuse_circles(field.annotation, (), set())
        self._model: Any = module.create_model("Parameters", **definitions)
        found, self.definitions = (_schemas_two if self._two else _schemas_one)(self._model)
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
        values, error = self._validated(given)
        if error is not None and self._two and _has_large_float(error):
            values, error = self._validated(_with_integers(given))
        violations = [] if error is None else self._violations(error)
        if violations:
            raise Mismatch(violations)
        for key, field in self._fields.items():
            if key in values and (key in given or field.info is not None):
                arguments[field.name] = values[key]

    def _validated(self, given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """Returns the converted values, and the error or None."""
        if not self._two:
            values, _, error = self._module.validate_model(self._model, given)
            return values, error
        try:
            return self._model.model_validate(given).__dict__, None
        except self._module.ValidationError as error:
            return {}, error

    def _violations(self, error: Any) -> list[Violation]:
        found: list[Violation] = []
        options = {"include_url": False, "include_context": False, "include_input": False}
        for one in error.errors(**(options if self._two else {}))[:VIOLATIONS_LIMIT]:
            key, *rest = one["loc"]
            # pydantic 1 has other names of rules.
            kind: str = "missing" if one["type"] == "value_error.missing" else one["type"]
            if not rest and kind == "missing":
                continue  # the names are checked before
            loc = [part if isinstance(part, int) else str(part) for part in rest]
            found.append(Violation((self._fields[key].name, *loc), kind, one["msg"]))
        return found


def output_schema(module: Any, annotation: Any) -> Schema | None:
    """Returns the schema of a result or an item, or None if pydantic cannot make it."""
    try:
        if _is_two(module):
            options = {"mode": "serialization", "schema_generator": _generator()}
            whole = module.TypeAdapter(annotation).json_schema(**options)
            schema, definitions = inlined(whole, whole.pop("$defs", {}))
        else:
            model = Model(module, [Field("value", annotation, None)])
            schema, definitions = model.schemas["value"], model.definitions
    except Exception:  # pydantic has many classes of errors for annotations
        return None
    return {**schema, "$defs": definitions} if definitions else schema


def _has_large_float(error: Any) -> bool:
    """Returns whether pydantic 2 refused a float from 2^63 on as an integer."""
    return any(one["type"] == "int_parsing_size" for one in error.errors(include_context=False))


def _with_integers(value: Any) -> Any:
    """Returns a copy of a JSON value whose floats without a fraction are integers: 1e21."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {key: _with_integers(member) for key, member in members}
    if isinstance(value, list):
        return [_with_integers(item) for item in cast("list[Any]", value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_two(module: Any) -> bool:
    return hasattr(module, "TypeAdapter")


_TIMEDELTA = SCALARS[datetime.timedelta].schema


def _decimal(number: Schema) -> Schema:
    return {"anyOf": [number, {"type": "string", "format": "decimal"}]}


# -- pydantic 2 -----------------------------------------------------------------------------------


def _schemas_two(model: Any) -> Schemas:
    whole = model.model_json_schema(mode="validation", schema_generator=_generator())
    return inlined(whole["properties"], whole.get("$defs", {}))


@functools.cache
def _generator() -> Any:
    """Returns the class that makes schemas. Its base exists only if pydantic is installed."""
    base: Any = importlib.import_module("pydantic.json_schema").GenerateJsonSchema

    class Generator(base):
        ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}

        def field_title_should_be_set(self, _schema: Any) -> bool:
            return False

        def encode_default(self, dft: Any) -> Any:
            """Returns a default as JSON. pydantic makes an adapter for each default."""
            plain = dft is None or type(dft) in (str, int, bool)
            return dft if plain else base.encode_default(self, dft)

        def _is_hidden(self, schema: Any) -> bool:
            """Returns whether a function of the app sees the value before pydantic checks it."""
            return self.mode == "validation" and not schema.get("json_schema_input_schema")

        def function_before_schema(self, schema: Any) -> Schema:
            made = base.function_before_schema(self, schema)
            return {"anyOf": [made, {}]} if self._is_hidden(schema) else made

        def function_wrap_schema(self, schema: Any) -> Schema:
            made = base.function_wrap_schema(self, schema)
            return {"anyOf": [made, {}]} if self._is_hidden(schema) else made

        def function_plain_schema(self, schema: Any) -> Schema:
            return {} if self._is_hidden(schema) else base.function_plain_schema(self, schema)

        def set_schema(self, schema: Any) -> Schema:
            return self._repeated(base.set_schema(self, schema))

        def frozenset_schema(self, schema: Any) -> Schema:
            return self._repeated(base.frozenset_schema(self, schema))

        def _repeated(self, made: Schema) -> Schema:
            """JSON arrays with repeated values become sets too."""
            if self.mode == "validation":
                made.pop("uniqueItems", None)
            return made

        def timedelta_schema(self, _schema: Any) -> Schema:
            return dict(_TIMEDELTA)

        def decimal_schema(self, schema: Any) -> Schema:
            names = ("le", "ge", "lt", "gt", "multiple_of")
            bounds = {name: schema[name] for name in names if name in schema}
            return _decimal(self.float_schema({"type": "float", **bounds}))

        def model_schema(self, schema: Any) -> Schema:
            made = base.model_schema(self, schema)
            more = _has_more_names(schema["cls"])
            return {"anyOf": [made, {"type": "object"}]} if more else made

    return Generator


def _has_more_names(cls: Any) -> bool:
    """Returns whether a model accepts a field by names that its schema does not list."""
    config = cls.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    aliases = [field.validation_alias for field in cls.model_fields.values()]
    return any(one is not None and (by_name or not isinstance(one, str)) for one in aliases)


# -- pydantic 1 -----------------------------------------------------------------------------------


def _schemas_one(model: Any) -> Schemas:
    maker = _FieldSchemas()
    fields = {name: maker.of_field(field) for name, field in model.__fields__.items()}
    return inlined(fields, maker.definitions)


def _refuse_circles(annotation: Any, open_: tuple[Any, ...], closed: set[Any]) -> None:
    """Raises ValueError for a dataclass that contains itself: pydantic 1 never ends with it.

    Reads each class once, because many fields may share a class."""
    for part in typing.get_args(annotation):
        _refuse_circles(part, open_, closed)
    if not isinstance(annotation, type) or not hasattr(annotation, "__dataclass_fields__"):
        return
    if annotation in open_:
        raise ValueError(f"{annotation.__name__} contains itself")
    if annotation not in closed:
        for part in typing.get_type_hints(annotation).values():
            _refuse_circles(part, (*open_, annotation), closed)
        closed.add(annotation)


class _FieldSchemas:
    """Makes schemas of the fields of models.

    The schemas of pydantic 1 have an older draft, and do not say where null is accepted."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._names: dict[Any, str] = {}
        self._fields: Any = importlib.import_module("pydantic.fields")
        self._schema: Any = importlib.import_module("pydantic.schema")

    def of_field(self, field: Any) -> Schema:
        """Returns the schema of a field, with its description and default."""
        made, info = self._of_type(field), field.field_info
        texts = {"title": info.title, "description": info.description}
        made = {**made, **{name: text for name, text in texts.items() if text}}
        if not field.required and field.default is not None:
            made = with_default(made, field.default)
        return {**made, **info.extra}

    def _of_type(self, field: Any) -> Schema:
        made = self._of_shape(field)
        validators: dict[str, Any] = field.class_validators or {}
        if field.pre_validators or any(one.pre for one in validators.values()):
            made = {"anyOf": [made, {}]}  # a function sees the value before pydantic checks it
        if field.allow_none and made and made != {"type": "null"}:
            made = {"anyOf": [*_members(made), {"type": "null"}]}
        return made

    def _of_shape(self, field: Any) -> Schema:
        shape: int = field.shape
        if shape == self._fields.SHAPE_GENERIC:
            return {}
        inner: list[Any] = field.sub_fields or []
        parts = [self._of_type(one) for one in inner]
        if shape == self._fields.SHAPE_SINGLETON:
            return _any_of(parts) if parts else self._of_class(field, field.type_)
        if shape in self._fields.MAPPING_LIKE_SHAPES:
            value: Schema = parts[0] if parts else {}
            return {"type": "object", **({"additionalProperties": value} if value else {})}
        if shape == self._fields.SHAPE_TUPLE:
            return _row(parts, len(parts))
        bounds = {name: count for name, count in self._bounds(field).items() if "Items" in name}
        item = _any_of(parts) if parts else {}
        return {"type": "array", **bounds, **({"items": item} if item else {})}

    def _of_class(self, field: Any, kind: Any) -> Schema:
        if inspect.isclass(kind):
            model: Any = getattr(kind, "__pydantic_model__", kind)  # of other classes with fields
            if issubclass(kind, enum.Enum):
                made = one_of([(one.value, one) for one in kind])
                return {} if made is None else {**made.schema, "title": kind.__name__}
            if is_named_tuple(kind):
                fields: list[Any] = list(model.__fields__.values())
                least = sum(1 for one in fields if one.required)
                return _row([self.of_field(one) for one in fields], least)
            if hasattr(model, "__fields__"):
                return self._of_model(model)
            if issubclass(kind, decimal.Decimal):
                return _decimal({"type": "number", **self._bounds(field)})
            if issubclass(kind, datetime.timedelta):
                return dict(_TIMEDELTA)
        made, _, _ = self._schema.field_singleton_schema(
            field,
            by_alias=True,
            model_name_map={},
            ref_template=PREFIX + "{model}",
            schema_overrides=False,
            known_models=set(),
        )
        return {**made, **self._bounds(field)}

    def _bounds(self, field: Any) -> Schema:
        return dict(self._schema.get_field_schema_validations(field))

    def _of_model(self, model: Any) -> Schema:
        """Returns a reference to the model's definition."""
        name = self._names.get(model)
        if name is None:
            name = model.__name__
            while name in self.definitions:
                name += "_"
            self._names[model] = name
            self.definitions[name] = {}  # the model may contain itself
            self.definitions[name] = self._object(model)
        return {"$ref": PREFIX + name}

    def _object(self, model: Any) -> Schema:
        fields, config = model.__fields__, model.__config__
        if "__root__" in fields:
            return self.of_field(fields["__root__"])
        made: Schema = {"type": "object", "title": config.title or model.__name__}
        made["properties"] = {one.alias: self.of_field(one) for one in fields.values()}
        required = [one.alias for one in fields.values() if one.required]
        if required:
            made["required"] = required
        if getattr(config.extra, "value", config.extra) == "forbid":
            made["additionalProperties"] = False
        has_alias = any(one.alias != name for name, one in fields.items())
        if config.allow_population_by_field_name and has_alias:
            made = {"anyOf": [made, {"type": "object"}]}
        return {"anyOf": [made, {}]} if model.__pre_root_validators__ else made


def _row(items: list[Schema], least: int) -> Schema:
    return {"type": "array", "prefixItems": items, "minItems": least, "maxItems": len(items)}


def _any_of(members: list[Schema]) -> Schema:
    """Returns a union without repeated members. A union of unions is flat."""
    flat: list[Schema] = []
    for member in members:
        flat += [one for one in _members(member) if one not in flat]
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _members(schema: Schema) -> list[Schema]:
    """Returns the members of a union, or the schema itself."""
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
