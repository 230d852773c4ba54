# Contract 1, "Parameters and types": describes a function once, after setup(). The worker keeps the
# description with the version.
from __future__ import annotations

import inspect
import json
from typing import Any, Callable, NamedTuple, cast

from .docstrings import parsed
from .hints import code_of, hints_of, kind_of, output_of
from .parameters import Parameter, Parameters, parameters_of, unchecked
from .simple import is_simple
from .type import Schema

# The schemas of an app, in characters of JSON. Contract 7.
SCHEMAS_LIMIT = 256 * 1024


def _pydantic() -> Any:
    from .with_pydantic import pydantic

    return pydantic()


class Described(NamedTuple):
    """The schema of a function, and how its arguments are converted."""

    schema: Schema | None
    parameters: Parameters | None
    # Why the function is untyped, if it has no schema.
    untyped: str | None


class Descriptions:
    """Describes the functions of an app. Their schemas share one limit."""

    def __init__(self, validate: bool, find_pydantic: Callable[[], Any] = _pydantic) -> None:
        self._validate = validate
        self._find_pydantic = find_pydantic
        self._left = SCHEMAS_LIMIT

    def of(self, call: Callable[..., object]) -> Described:
        """Returns the description of a function. Raises nothing."""
        try:
            signature = inspect.signature(call)
        except (TypeError, ValueError):
            return Described(None, None, "Python does not know its signature")
        try:
            schema, parameters = self._described(call, signature)
            size = _size(schema, {})
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of the app's classes, or a panic of pydantic's Rust code
            return Described(None, None, _text_of(error))
        if size > self._left:
            reason = f"its schema of {size} bytes exceeds the limit: the schemas of an app have"
            return Described(None, parameters, f"{reason} at most {SCHEMAS_LIMIT} bytes")
        self._left -= size
        return Described(schema, parameters, None)

    def _described(
        self, call: Callable[..., object], signature: inspect.Signature
    ) -> tuple[Schema, Parameters]:
        code = code_of(call)
        hints = hints_of(code, signature)
        doc = parsed(inspect.getdoc(call))
        named, extra = parameters_of(signature, hints, doc.parameters)
        parameters = self._typed(named, extra) if self._validate else unchecked(named, extra)
        kind = kind_of(code, hints)
        schema: Schema = {"kind": kind}
        if doc.summary:
            schema["summary"] = doc.summary
        if doc.description:
            schema["description"] = doc.description
        schema["parameters"] = parameters.schema
        output = self._output(output_of(kind, hints))
        if output:
            schema["returns" if kind == "value" else "item"] = output
        return schema, parameters

    def _typed(self, named: list[Parameter], extra: Any) -> Parameters:
        """Returns the parameters. pydantic makes them if a type needs it and the app has it."""
        annotations = [one.annotation for one in named] + ([] if extra is None else [extra])
        has_field = any(one.field is not None for one in named)
        # The imports of the makers take milliseconds, which an app without types does not pay.
        if not has_field and all(one is Any for one in annotations):
            return unchecked(named, extra)
        simple = not has_field and all(map(is_simple, annotations))
        module = None if simple else self._find_pydantic()
        if module is not None:
            from .by_pydantic import pydantic_parameters

            return pydantic_parameters(named, extra, module)
        from .by_standard import standard_parameters

        return standard_parameters(named, extra)

    def _output(self, annotation: Any) -> Schema:
        """Returns the schema of a result or an item. It is empty if the annotation is unknown."""
        if annotation is Any:
            return {}
        module = None if is_simple(annotation) else self._find_pydantic()
        if module is not None:
            from .with_pydantic import output_schema

            return output_schema(module, annotation) or {}
        from .standard import Maker

        maker = Maker()
        schema = maker.type_of(annotation).schema
        return {**schema, "$defs": maker.definitions} if maker.definitions else schema


def _size(part: object, known: dict[int, int]) -> int:
    """Returns the length of a schema as JSON.

    Many places may share a part. Each part is measured once, because its text may be huge."""
    if not isinstance(part, (dict, list)):
        return len(json.dumps(part, allow_nan=False))
    size = known.get(id(cast("object", part)))
    if size is None:
        if isinstance(part, dict):
            members = cast("dict[str, object]", part).items()
            size = sum(len(json.dumps(key)) + 2 + _size(value, known) for key, value in members)
        else:
            size = sum(1 + _size(item, known) for item in cast("list[object]", part))
        known[id(cast("object", part))] = size = size + 2
    return size


def _text_of(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(the exception has no text)"
    return f"{type(error).__name__}: {text}"[:500]
