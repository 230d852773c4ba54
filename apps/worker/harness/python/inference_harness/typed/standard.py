# Contract 1, "Parameters and types": types of annotations, by the standard library alone.
from __future__ import annotations

import collections
import collections.abc as abc
import enum
import typing
from typing import Any, Callable, cast

from .choices import one_of, union
from .classes import (
    dataclass_type,
    is_named_tuple,
    is_typed_dict,
    named_tuple_type,
    typed_dict_type,
)
from .containers import mapping, row, sequence
from .files import FILE, FILE_KINDS
from .plain import PLAIN
from .type import ANYTHING, FITS, NO, Convert, Schema, Type

_LISTS = (
    list,
    abc.Sequence,
    abc.MutableSequence,
    abc.Iterable,
    abc.Collection,
)
_SETS = (set, abc.Set, abc.MutableSet)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
# Marks around a type.
_MARKS = ("Final", "ClassVar", "Required", "NotRequired", "ReadOnly")


class Maker:
    """Makes the types of the annotations of one schema."""

    def __init__(self, foreign: Callable[[Any], Type | None] = lambda annotation: None) -> None:
        # Classes that contain themselves, by their names in `$defs`.
        self.definitions: dict[str, Schema] = {}
        # Returns the type of a class that the standard library does not know, or None.
        self._foreign = foreign
        self._open: dict[type, _Recursion] = {}
        self._made: dict[type, Type] = {}

    def type_of(self, annotation: Any) -> Type:
        """Returns the type of an annotation. An unknown annotation accepts every value."""
        try:
            plain = PLAIN.get(annotation)
        except TypeError:  # unhashable
            plain = None
        if plain is not None:
            return plain
        origin = typing.get_origin(annotation)
        if origin is None:
            return self._of_name(annotation)
        arguments: tuple[Any, ...] = typing.get_args(annotation)
        if origin is typing.Annotated or _name(origin) in _MARKS:
            return self._annotated(annotation, arguments)
        if origin is typing.Union or _name(origin) == "UnionType":
            return union([self.type_of(one) for one in arguments])
        if _name(origin) == "Literal":
            values = [one.value if isinstance(one, enum.Enum) else one for one in arguments]
            return one_of(list(zip(values, arguments))) or ANYTHING
        return self._container(origin, arguments) or self._foreign(annotation) or ANYTHING

    def _of_name(self, annotation: Any) -> Type:
        """Returns the type of an annotation without arguments."""
        if isinstance(annotation, type):
            return (
                (FILE if annotation in FILE_KINDS else None)
                or self._container(annotation, ())
                or self._class(cast("type[Any]", annotation))
                or ANYTHING
            )
        supertype = getattr(annotation, "__supertype__", None)  # NewType
        if supertype is None and _name(type(annotation)) == "TypeAliasType":
            supertype = annotation.__value__
        if supertype is None and isinstance(annotation, typing.TypeVar):
            bound = annotation.__bound__
            if annotation.__constraints__:
                return union([self.type_of(one) for one in annotation.__constraints__])
            supertype = bound
        return ANYTHING if supertype is None else self.type_of(supertype)

    def _annotated(self, annotation: Any, arguments: tuple[Any, ...]) -> Type:
        made = self.type_of(arguments[0])
        for one in getattr(annotation, "__metadata__", ()):
            text = getattr(one, "documentation", None)  # typing_extensions.Doc
            if isinstance(text, str):
                made = made._replace(schema={**made.schema, "description": text})
        return made

    def _container(self, origin: Any, arguments: tuple[Any, ...]) -> Type | None:
        if origin is tuple:
            return self._tuple(arguments)
        if origin in _MAPPINGS:
            key, value = arguments if len(arguments) == 2 else (Any, Any)
            return mapping(self.type_of(key), self.type_of(value))
        item = arguments[0] if len(arguments) == 1 else Any
        if origin in _LISTS:
            return sequence(self.type_of(item), list)
        if origin in _SETS:
            return sequence(self.type_of(item), set)
        if origin is frozenset:
            return sequence(self.type_of(item), frozenset)
        if origin is collections.deque:
            return sequence(self.type_of(item), collections.deque)
        return None

    def _tuple(self, arguments: tuple[Any, ...]) -> Type:
        if not arguments:
            return sequence(ANYTHING, tuple)
        if arguments == ((),):  # `tuple[()]` before Python 3.11
            return row([], tuple)
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return sequence(self.type_of(arguments[0]), tuple)
        return row([self.type_of(one) for one in arguments], tuple)

    def _class(self, kind: type[Any]) -> Type | None:
        if issubclass(kind, enum.Enum):
            return one_of([(_value(member), member) for member in kind])
        scalar = _scalar(kind)
        if scalar is not None:
            return scalar
        if hasattr(kind, "__dataclass_fields__") and "__get_validators__" not in dir(kind):
            return self._recursive(kind, dataclass_type)
        if is_typed_dict(kind):
            return self._recursive(kind, typed_dict_type)
        if is_named_tuple(kind):
            return self._recursive(kind, named_tuple_type)
        return self._foreign(kind)

    def _recursive(
        self, kind: type, make: Callable[[type, Callable[[object], Type]], Type]
    ) -> Type:
        """Returns the type of a class that may contain itself."""
        if kind in self._made:
            return self._made[kind]
        known = self._open.get(kind)
        if known is not None:
            return known.reference(self.definitions)
        recursion = self._open[kind] = _Recursion(kind.__name__)
        try:
            made = make(kind, self.type_of)
        except (NameError, TypeError):  # hints that name unknown types
            return ANYTHING
        finally:
            del self._open[kind]
        self._made[kind] = recursion.close(made, self.definitions)
        return self._made[kind]


class _Recursion:
    """A class whose type is being made."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made: Type | None = None
        self._key: str | None = None

    def reference(self, definitions: dict[str, Schema]) -> Type:
        """Returns the type of a place of the class inside the class."""
        if self._key is None:
            self._key = self._name
            while self._key in definitions:
                self._key += "_"
            definitions[self._key] = {}
        return Type({"$ref": f"#/$defs/{self._key}"}, self._convert, self._fit)

    def close(self, made: Type, definitions: dict[str, Schema]) -> Type:
        """Returns the type of the class."""
        self._made = made
        if self._key is None:
            return made
        definitions[self._key] = made.schema
        return made._replace(schema={"$ref": f"#/$defs/{self._key}"})

    def _convert(self, value: Any) -> Any:
        convert: Convert | None = None if self._made is None else self._made.convert
        return value if convert is None else convert(value)

    def _fit(self, value: object) -> int:
        return NO if self._made is None else min(FITS, self._made.fit(value))


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(getattr(kind, "_name", kind))


def _value(member: enum.Enum) -> object:
    value: object = member.value
    return value


def _scalar(kind: type) -> Type | None:
    """Returns the type of a class of `datetime`, `uuid`, `decimal`, `pathlib`, or of `bytes`.

    Loads the module `scalars` only if the class is of one of these modules."""
    if kind is not bytes and kind.__module__.partition(".")[0] not in _SCALAR_MODULES:
        return None
    from .scalars import SCALARS

    return SCALARS.get(kind)


_SCALAR_MODULES = ("datetime", "uuid", "decimal", "_pydatetime", "_decimal", "pathlib")
