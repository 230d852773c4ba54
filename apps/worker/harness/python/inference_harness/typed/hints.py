# Contract 1, "Parameters and types": the annotations of a function, and its kind.
from __future__ import annotations

import collections.abc as abc
import functools
import inspect
import typing
from typing import Any, Callable, Literal, cast

Kind = Literal["value", "stream"]

_ITERATORS = (abc.Iterator, abc.Generator, abc.AsyncIterator, abc.AsyncGenerator)
# A generator function may also have these annotations.
_ITERABLES = (*_ITERATORS, abc.Iterable, abc.AsyncIterable)
_AWAITABLES = (abc.Awaitable, abc.Coroutine)


def code_of(call: Callable[..., object]) -> Callable[..., object]:
    """Returns the function behind partials, bound methods, decorators and callable instances."""
    while True:
        if isinstance(call, functools.partial):
            call = cast("functools.partial[object]", call).func
        elif inspect.ismethod(call):
            call = call.__func__
        elif hasattr(call, "__wrapped__"):
            call = call.__wrapped__  # pyright: ignore
        elif not inspect.isfunction(call) and inspect.isfunction(type(call).__call__):
            call = type(call).__call__
        else:
            return call


def hints_of(code: Callable[..., object], signature: inspect.Signature) -> dict[str, Any]:
    """Returns the annotations by parameter, and of `return`. One that cannot be read is missing."""
    try:
        return typing.get_type_hints(code, include_extras=True)
    except Exception:  # the names and expressions of an app
        pass
    names: dict[str, Any] = getattr(code, "__globals__", {})
    written = {one.name: one.annotation for one in signature.parameters.values()}
    hints: dict[str, Any] = {}
    for name, annotation in {**written, "return": signature.return_annotation}.items():
        if annotation is inspect.Parameter.empty:
            continue
        try:
            part = type("Part", (), {"__annotations__": {"it": annotation}})
            hints[name] = typing.get_type_hints(part, names, include_extras=True)["it"]
        except Exception:
            continue
    return hints


def kind_of(code: Callable[..., object], hints: dict[str, Any]) -> Kind:
    """Returns whether the function is described as a stream or as one value."""
    if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
        return "stream"
    return "stream" if typing.get_origin(_awaited(hints.get("return"))) in _ITERATORS else "value"


def output_of(kind: Kind, hints: dict[str, Any]) -> Any:
    """Returns the annotation of the result, or of an item. `Any` if there is none."""
    annotation = _awaited(hints.get("return", Any))
    if kind == "value":
        return annotation
    if typing.get_origin(annotation) not in _ITERABLES:
        return Any
    arguments = typing.get_args(annotation)
    return arguments[0] if arguments else Any


def _awaited(annotation: Any) -> Any:
    """Returns T for `Awaitable[T]` and `Coroutine[…, …, T]`."""
    if typing.get_origin(annotation) in _AWAITABLES:
        arguments = typing.get_args(annotation)
        return arguments[-1] if arguments else Any
    return annotation
