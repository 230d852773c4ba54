# Contract 1, "Parameters and types": schemas by pydantic 1.10. Its own schemas have an older draft
# and do not say where null is accepted. So the schemas are made of the fields of its models.
from __future__ import annotations

import enum
import importlib
import inspect
import typing
from typing import Any

from .choices import one_of
from .classes import is_named_tuple
from .defaults import with_default
from .type import Schema

_LONGEST_S = 999_999_999 * 86_400
# By the formats of pydantic 1. A timedelta may be a number of seconds too.
_FORMATS: dict[str, Schema] = {
    "time-delta": {
        "anyOf": [
            {"type": "string", "format": "duration"},
            {"type": "number", "minimum": -_LONGEST_S, "maximum": _LONGEST_S},
        ]
    }
}


def schemas_one(model: Any) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """Returns the schemas of a model's fields, and the definitions of classes in themselves."""
    maker = _Maker()
    fields: dict[str, Any] = model.__fields__
    return {name: maker.of_field(field) for name, field in fields.items()}, maker.definitions


def refuse_circles(annotation: Any, above: tuple[Any, ...] = ()) -> None:
    """Raises ValueError for a dataclass that contains itself: pydantic 1 never ends with it."""
    for part in typing.get_args(annotation):
        refuse_circles(part, above)
    if isinstance(annotation, type) and hasattr(annotation, "__dataclass_fields__"):
        if annotation in above:
            raise ValueError(f"{annotation.__name__} contains itself")
        for part in typing.get_type_hints(annotation).values():
            refuse_circles(part, (*above, annotation))


class _Maker:
    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}
        self._fields: Any = importlib.import_module("pydantic.fields")
        self._schema: Any = importlib.import_module("pydantic.schema")
        self._decimal: Any = importlib.import_module("decimal").Decimal
        # Models that are being described. The value is the name of a definition, if one is needed.
        self._open: dict[Any, str | None] = {}
        self._made: dict[Any, Schema] = {}

    def of_field(self, field: Any) -> Schema:
        """Returns the schema of a field, with its description and default."""
        made = self._of_type(field)
        info = field.field_info
        for name in ("title", "description"):
            text = getattr(info, name, None)
            if text:
                made = {**made, name: text}
        if not field.required and field.default is not None:
            made = with_default(made, field.default)
        return {**made, **(getattr(info, "extra", None) or {})}

    def _of_type(self, field: Any) -> Schema:
        made = self._of_shape(field)
        validators: dict[str, Any] = field.class_validators or {}
        if field.pre_validators or any(one.pre for one in validators.values()):
            made = {"anyOf": [made, {}]}  # a function sees the value before pydantic checks it
        if field.allow_none and made and made != {"type": "null"}:
            made = {"anyOf": [*_members(made), {"type": "null"}]}
        return made

    def _of_shape(self, field: Any) -> Schema:
        names, shape = self._fields, field.shape
        parts: list[Any] = field.sub_fields or []
        if shape == names.SHAPE_SINGLETON:
            return self._singleton(field)
        bounds: Schema = self._schema.get_field_schema_validations(field)
        bounds = {name: value for name, value in bounds.items() if name in _ARRAY_BOUNDS}
        if shape in names.MAPPING_LIKE_SHAPES:
            value = self._of_type(field.sub_fields[0]) if field.sub_fields else {}
            made: Schema = {"type": "object"}
            if value:
                made["additionalProperties"] = value
            return made
        if shape == names.SHAPE_TUPLE:
            items = [self._of_type(one) for one in parts]
            size = {"minItems": len(items), "maxItems": len(items)}
            return {"type": "array", "prefixItems": items, **size}
        if shape == names.SHAPE_GENERIC:
            return {}
        items = [self._of_type(one) for one in parts]
        item = items[0] if len(items) == 1 else {"anyOf": items} if items else {}
        made = {"type": "array", **bounds}
        return {**made, "items": item} if item else made

    def _singleton(self, field: Any) -> Schema:
        if field.sub_fields:
            members: list[Schema] = []
            for one in field.sub_fields:
                members += [made for made in _members(self._of_type(one)) if made not in members]
            return members[0] if len(members) == 1 else {"anyOf": members}
        kind: Any = field.type_
        if inspect.isclass(kind):
            if issubclass(kind, enum.Enum):
                made = one_of([(one.value, one) for one in kind])
                return {} if made is None else {**made.schema, "title": kind.__name__}
            model: Any = getattr(kind, "__pydantic_model__", kind)  # of other classes with fields
            if is_named_tuple(kind):
                return self._row(model)
            if hasattr(model, "__fields__"):
                return self._model(model)
            if issubclass(kind, self._decimal):
                bounds = self._bounds(field)
                text = {"type": "string", "format": "decimal"}
                return {"anyOf": [{"type": "number", **bounds}, text]}
        made, _, _ = self._schema.field_singleton_schema(
            field,
            by_alias=True,
            model_name_map={},
            ref_template="#/$defs/{model}",
            schema_overrides=False,
            known_models=set(),
        )
        made = {**made, **self._bounds(field)}
        wider = _FORMATS.get(made.get("format", ""))
        return made if wider is None else dict(wider)

    def _row(self, model: Any) -> Schema:
        fields: list[Any] = list(model.__fields__.values())
        least = sum(1 for one in fields if one.required)
        size = {"minItems": least, "maxItems": len(fields)}
        return {"type": "array", "prefixItems": [self.of_field(one) for one in fields], **size}

    def _bounds(self, field: Any) -> Schema:
        return dict(self._schema.get_field_schema_validations(field))

    def _model(self, model: Any) -> Schema:
        if model in self._made:
            return self._made[model]
        if model in self._open:
            name = self._open[model] = self._open[model] or self._free_name(model.__name__)
            return {"$ref": f"#/$defs/{name}"}
        self._open[model] = None
        made = self._object(model)
        name = self._open.pop(model)
        if name is not None:
            self.definitions[name] = made
            made = {"$ref": f"#/$defs/{name}"}
        self._made[model] = made
        return made

    def _free_name(self, name: str) -> str:
        while name in self.definitions:
            name += "_"
        self.definitions[name] = {}
        return name

    def _object(self, model: Any) -> Schema:
        fields: dict[str, Any] = model.__fields__
        if "__root__" in fields:
            return self.of_field(fields["__root__"])
        made: Schema = {"type": "object", "title": model.__config__.title or model.__name__}
        made["properties"] = {one.alias: self.of_field(one) for one in fields.values()}
        by_name = getattr(model.__config__, "allow_population_by_field_name", False)
        required = [one.alias for one in fields.values() if one.required]
        if required:
            made["required"] = required
        extra = getattr(model.__config__, "extra", None)
        if getattr(extra, "value", extra) == "forbid":
            made["additionalProperties"] = False
        has_alias = any(one.alias != name for name, one in fields.items())
        if by_name and has_alias:
            made = {"anyOf": [made, {"type": "object"}]}
        return {"anyOf": [made, {}]} if model.__pre_root_validators__ else made


_ARRAY_BOUNDS = ("minItems", "maxItems")


def _members(schema: Schema) -> list[Schema]:
    """Returns the members of a union, or the schema itself."""
    return schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
