# Contract 1, "Parameters and types": schemas by pydantic 2. The gateway must accept every value
# that the process converts. So some schemas are wider than the schemas of pydantic.
from __future__ import annotations

import importlib
from typing import Any

from .references import inlined
from .type import Schema

_LONGEST_S = 999_999_999 * 86_400
_SECONDS: Schema = {"type": "number", "minimum": -_LONGEST_S, "maximum": _LONGEST_S}

_generators: list[Any] = []


def schemas_two(model: Any) -> tuple[dict[str, Schema], dict[str, Schema]]:
    """Returns the schemas of a model's fields, and the definitions of classes in themselves."""
    whole = model.model_json_schema(mode="validation", schema_generator=_generator())
    return inlined(whole["properties"], whole.get("$defs", {}))


def output_two(module: Any, annotation: Any) -> Schema:
    """Returns the schema of a result."""
    adapter = module.TypeAdapter(annotation)
    whole = adapter.json_schema(mode="serialization", schema_generator=_generator())
    definitions = whole.pop("$defs", {})
    schema, kept = inlined(whole, definitions)
    return {**schema, "$defs": kept} if kept else schema


def _generator() -> Any:
    """Returns the class that makes schemas. Its base exists only if pydantic is installed."""
    if not _generators:
        base = importlib.import_module("pydantic.json_schema").GenerateJsonSchema
        _generators.append(type("Schemas", (base,), _methods(base)))
    return _generators[0]


def _methods(base: Any) -> dict[str, Any]:
    def wider(name: str) -> Any:
        """Accepts every value where a function sees the value before pydantic checks it."""
        method = getattr(base, name)

        def schema_of(self: Any, schema: Any) -> Schema:
            made = method(self, schema)
            if self.mode != "validation" or schema.get("json_schema_input_schema"):
                return made
            return {"anyOf": [made, {}]}

        return schema_of

    def without_unique(name: str) -> Any:
        """JSON arrays with repeated values become sets too."""
        method = getattr(base, name)

        def schema_of(self: Any, schema: Any) -> Schema:
            made = method(self, schema)
            if self.mode == "validation":
                made.pop("uniqueItems", None)
            return made

        return schema_of

    def plain(self: Any, schema: Any) -> Schema:
        if self.mode == "validation" and not schema.get("json_schema_input_schema"):
            return {}
        return base.function_plain_schema(self, schema)

    def timedelta(_self: Any, _schema: Any) -> Schema:
        return {"anyOf": [{"type": "string", "format": "duration"}, dict(_SECONDS)]}

    def decimal(self: Any, schema: Any) -> Schema:
        numbers = {name: bound for name, bound in schema.items() if name in _BOUNDS}
        number = self.float_schema({"type": "float", **numbers})
        return {"anyOf": [number, {"type": "string", "format": "decimal"}]}

    def model(self: Any, schema: Any) -> Schema:
        made = base.model_schema(self, schema)
        return {"anyOf": [made, {"type": "object"}]} if _has_other_names(schema["cls"]) else made

    def no_title(_self: Any, _schema: Any) -> bool:
        return False

    return {
        "ignored_warning_kinds": {"non-serializable-default", "skipped-choice"},
        "field_title_should_be_set": no_title,
        "function_before_schema": wider("function_before_schema"),
        "function_wrap_schema": wider("function_wrap_schema"),
        "function_plain_schema": plain,
        "set_schema": without_unique("set_schema"),
        "frozenset_schema": without_unique("frozenset_schema"),
        "timedelta_schema": timedelta,
        "decimal_schema": decimal,
        "model_schema": model,
    }


_BOUNDS = ("le", "ge", "lt", "gt", "multiple_of")


def _has_other_names(cls: Any) -> bool:
    """Returns whether a model accepts a field by names that its schema does not list."""
    config = cls.model_config
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    for field in cls.model_fields.values():
        alias = field.validation_alias
        if alias is not None and (by_name or not isinstance(alias, str)):
            return True
    return False
