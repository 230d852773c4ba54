# Contract 1: a public function: its description, and the arguments of a call.
from __future__ import annotations

import functools
import inspect
import json
from typing import Any, Callable, NoReturn, cast

from . import uploads
from .failures import Refused
from .media import media_of
from .typed.defaults import default_of
from .typed.describe import Descriptions
from .typed.mismatch import KEY_LIMIT, VIOLATIONS_LIMIT, Mismatch
from .typed.parameters import RUN_ID

_decode = json.JSONDecoder().decode

DOC_LIMIT = 200

Arguments = dict[str, Any]
Description = dict[str, Any]


class Function:
    """One public function."""

    def __init__(self, name: str, call: Callable[..., object]) -> None:
        self.name = name
        self._call = call
        self._names: set[str] = set()
        # Positional-only parameters, in order.
        self._positional: list[inspect.Parameter] = []
        self._required: list[str] = []
        self._extra = False
        self._parameters: list[Description] = []
        try:
            signature = inspect.signature(call)
        except (TypeError, ValueError):
            self._extra = (
                True  # the signature is unknown, so Python itself checks the arguments of the call
            )
        else:
            for parameter in signature.parameters.values():
                self._add(parameter)
        self._takes_run_id = RUN_ID in self._names
        self._convert: Callable[[Arguments], None] | None = None
        # The media type of the bytes that the function returns or yields.
        self.media: str | None = None
        # The schema, or why there is none. Known after `describe_types`.
        self._types: Description = {}

    def describe_types(self, descriptions: Descriptions) -> str | None:
        """Makes the schema and the conversion of arguments. Returns why the function is untyped."""
        self.media = media_of(self._call)
        schema, parameters, untyped = descriptions.of(self._call)
        self._types = {"schema": schema} if untyped is None else {"untyped": untyped}
        if parameters is not None:
            self._convert = parameters.convert
            self._required = parameters.required
            for spec in self._parameters:
                self._correct(spec, parameters.schema["properties"][spec["name"]])
        return untyped

    def _correct(self, spec: Description, schema: Description) -> None:
        """Corrects a parameter whose default is `Field(…)` of pydantic."""
        spec["required"] = spec["name"] in self._required or (
            spec["required"] and spec["name"] == RUN_ID
        )
        if not spec["required"] and "default" in schema:
            spec.setdefault("default", schema["default"])

    def describe(self) -> Description:
        """Returns the function's description in `ready`."""
        spec: Description = {
            "name": self.name,
            "parameters": self._parameters,
            "extra": self._extra,
            **self._types,
        }
        if self.media is not None:
            spec["media"] = self.media
        doc = docstring(self._call).split("\n")[0][:DOC_LIMIT]
        if doc:
            spec["doc"] = doc
        return spec

    def bound(self, params: bytes, run_id: str) -> tuple[Callable[..., object], Arguments]:
        """Returns a callable and its keyword arguments, made of the caller's JSON.

        Raises Refused with every wrong parameter."""
        try:
            if params[:1] == uploads.MARK:
                decoded = uploads.decoded(params)
            else:
                decoded = _decode(params.decode() if params else "{}")
        except (ValueError, RecursionError):
            raise Refused("invalid_input", "the parameters are not JSON") from None
        if type(decoded) is not dict:
            raise Refused("invalid_input", "the parameters are not a JSON object")
        arguments = cast("Arguments", decoded)
        if self._takes_run_id and RUN_ID not in arguments:
            arguments[RUN_ID] = run_id
        details = self._wrong_names(arguments)
        if self._convert is not None:
            try:
                self._convert(arguments)
            except Mismatch as error:
                details += [one.detail() for one in error.violations]
        if details:
            self._refuse(details)
        return self._with_positional(arguments) if self._positional else self._call, arguments

    def _add(self, parameter: inspect.Parameter) -> None:
        if parameter.kind is parameter.VAR_KEYWORD:
            self._extra = True
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        if parameter.kind is parameter.POSITIONAL_ONLY:
            self._positional.append(parameter)
        required = parameter.default is parameter.empty
        spec: Description = {"name": parameter.name, "required": required}
        if required:
            self._required.append(parameter.name)
        else:
            _add_default(spec, parameter.default)
        if parameter.annotation is not parameter.empty:
            try:
                text = inspect.formatannotation(parameter.annotation)
            except Exception:  # of the app's classes
                text = "(the annotation has no text)"
            spec["annotation"] = text[:DOC_LIMIT]
        self._names.add(parameter.name)
        self._parameters.append(spec)

    def _with_positional(self, arguments: Arguments) -> Callable[..., object]:
        """Returns a callable that has the positional-only arguments.

        Removes them from `arguments`."""
        given = [
            number
            for number, parameter in enumerate(self._positional)
            if parameter.name in arguments
        ]
        if not given:
            return self._call
        # Every parameter before the last sent parameter needs a value too: its default.
        positional = self._positional[: given[-1] + 1]
        values = [arguments.pop(one.name, one.default) for one in positional]
        return functools.partial(self._call, *values)

    def _wrong_names(self, arguments: Arguments) -> list[dict[str, Any]]:
        """Returns every missing and unknown name. `Signature.bind` would return only the first."""
        details = [
            _detail(name, "Field required", "missing")
            for name in self._required
            if name not in arguments
        ]
        if not self._extra and not self._names.issuperset(arguments):
            details += [
                _detail(name, "Unexpected parameter", "unexpected")
                for name in arguments
                if name not in self._names
            ]
        return details

    def _refuse(self, details: list[dict[str, Any]]) -> NoReturn:
        details = details[:VIOLATIONS_LIMIT]  # the caller controls their number and their length
        names = ", ".join(
            f"{'.'.join(map(str, detail['loc'][1:]))} ({detail['type']})" for detail in details
        )
        message = f"wrong parameters for {self.name}: {names}"
        raise Refused("invalid_input", message[:DOC_LIMIT], details)


def docstring(call: Callable[..., object]) -> str:
    """Returns the docstring of a function or of a callable object.

    Without this function, a `functools.partial` has the docstring of its class."""
    while isinstance(call, functools.partial):
        call = cast("functools.partial[object]", call).func
    if not inspect.isroutine(call):
        own = inspect.getdoc(call.__call__)
        if own:
            return own.strip()
    return (inspect.getdoc(call) or "").strip()


def _detail(name: str, message: str, kind: str) -> dict[str, Any]:
    return {"loc": ["body", name[:KEY_LIMIT]], "msg": message, "type": kind}


def _add_default(spec: Description, default: object) -> None:
    value = default_of(default)
    if value is not None:
        spec["default"] = value[0]
