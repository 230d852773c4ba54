# Contract 1, "Parameters and types": dataclasses, TypedDict and NamedTuple.
from __future__ import annotations

import inspect
import typing
from typing import Any, Callable

from .containers import members_of, row
from .defaults import with_default
from .mismatch import Mismatch, Violations, mismatch
from .type import Schema, Type, of_json

TypeOf = Callable[[object], Type]


def is_typed_dict(kind: type[Any]) -> bool:
    """Returns whether the class is a TypedDict, of `typing` or of `typing_extensions`."""
    return dict in kind.__mro__ and hasattr(kind, "__required_keys__")


def is_named_tuple(kind: type[Any]) -> bool:
    """Returns whether the class is a NamedTuple."""
    return tuple in kind.__mro__ and hasattr(kind, "_field_defaults")


def dataclass_type(kind: type, type_of: TypeOf) -> Type:
    """Returns the type of a dataclass, made by its own `__init__`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: dict[str, Type] = {}
    required: list[str] = []
    defaults: dict[str, object] = {}
    for parameter in inspect.signature(kind).parameters.values():
        hint = hints.get(parameter.name, Any)
        # The hint of a field that only `__init__` takes: InitVar[T].
        hint = getattr(hint, "type", hint) if type(hint).__name__ == "InitVar" else hint
        fields[parameter.name] = type_of(hint)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            defaults[parameter.name] = parameter.default
    return _object(kind, fields, required, defaults, lambda given: kind(**given))


def typed_dict_type(kind: type, type_of: TypeOf) -> Type:
    """Returns the type of a TypedDict. Unknown members are dropped."""
    hints = typing.get_type_hints(kind, include_extras=True)
    required: frozenset[str] = getattr(kind, "__required_keys__")  # noqa: B009
    fields = {name: type_of(hint) for name, hint in hints.items()}
    names = [name for name in fields if _is_required(hints[name], name in required)]
    return _object(kind, fields, names, {}, lambda given: given)


def _is_required(hint: object, known: bool) -> bool:
    """Python 3.9 and 3.10 do not read the marks of `typing_extensions`."""
    mark = str(typing.get_origin(hint)).rpartition(".")[2]
    return mark == "Required" or (known and mark != "NotRequired")


def named_tuple_type(kind: type, type_of: TypeOf) -> Type:
    """Returns the type of a NamedTuple: an array with the fields in their order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    names: tuple[str, ...] = getattr(kind, "_fields")  # noqa: B009
    defaults: dict[str, object] = getattr(kind, "_field_defaults")  # noqa: B009
    items = [type_of(hints.get(name, Any)) for name in names]
    return row(items, lambda given: kind(*given), len(names) - len(defaults))


def _object(
    kind: type,
    fields: dict[str, Type],
    required: list[str],
    defaults: dict[str, object],
    make: Callable[[dict[str, Any]], object],
) -> Type:
    properties = {
        name: with_default(field.schema, defaults[name]) if name in defaults else field.schema
        for name, field in fields.items()
    }
    schema: Schema = {"type": "object", "title": kind.__name__, "properties": properties}
    if required:
        schema["required"] = required

    def convert(value: Any) -> Any:
        given = members_of(value)
        wrong = Violations()
        for name in required:
            if name not in given:
                wrong.add(name, mismatch("missing", "Field required"))
        made: dict[str, Any] = {}
        for name, field in fields.items():
            if name not in given:
                continue
            try:
                made[name] = given[name] if field.convert is None else field.convert(given[name])
            except Mismatch as error:
                wrong.add(name, error)
        wrong.check()
        try:
            return make(made)
        except (ValueError, AssertionError) as error:  # of `__post_init__`
            name = "Value" if isinstance(error, ValueError) else "Assertion"
            raise mismatch(f"{name.lower()}_error", f"{name} error, {error}"[:1000]) from None

    exact, fits = ((dict,), ()) if is_typed_dict(kind) else ((), (dict,))
    return Type(schema, convert, of_json(exact, fits))
