# Contract 1: an app's module and its public functions.
from __future__ import annotations

import contextvars
import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Callable

from .failures import Refused
from .functions import Arguments, Description, Function
from .names import Names
from .public import AppClass, Public
from .run import Run
from .source import FromSource, always_compile
from .typed.describe import Descriptions

# Begins a printed line that `check` reports as a note.
NOTE = "inference-proxy: "


class App:
    """The loaded module, and the instances of its classes."""

    def __init__(self, folder: str, entry: str) -> None:
        self._folder = folder
        self._entry = entry
        self._functions: dict[str, Function] = {}
        self._classes: list[AppClass] = []
        self._instances: list[object] = []
        self._module: ModuleType | None = None
        # Every run starts with a copy of this context, so that a run sees the variables that
        # setup() sets.
        self.context = contextvars.copy_context()

    def load(self) -> None:
        """Imports the entry file. Raises the exceptions of the file."""
        always_compile(self._folder)
        sys.path.insert(0, self._folder)
        entry = os.path.join(self._folder, self._entry)
        if os.path.dirname(entry) != self._folder:
            sys.path.insert(0, os.path.dirname(entry))
        name = os.path.splitext(os.path.basename(entry))[0]
        if name in sys.modules:
            name = f"app_{name}"
        spec = importlib.util.spec_from_file_location(name, entry)
        if spec is None or spec.loader is None:
            raise ImportError(f"{self._entry} is not a Python file")
        loader: Any = spec.loader
        if type(loader) is importlib.machinery.SourceFileLoader:
            loader = spec.loader = FromSource(name, entry)
        module = self._module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        loader.exec_module(module)
        with open(entry, "rb") as file:
            public = Public(module, Names(file.read()), self._folder)
        self._classes = public.classes
        for key, value in public.functions.items():
            self._functions[key] = Function(key, value)
        for note in public.notes:
            print(NOTE + note, file=sys.stderr)

    def set_up(self) -> Iterator[object]:
        """Calls the hooks `setup()`: the module's, then each class's on a new instance.

        Yields the result of each hook, which the caller awaits if necessary."""
        yield self._hook(self._module, "setup")
        for one in self._classes:
            instance = one.cls()
            self._instances.append(instance)
            yield self._hook(instance, "setup")
            for name in one.methods:
                method = getattr(instance, name)
                if callable(method):
                    self._functions[name] = Function(name, method)

    def tear_down(self) -> Iterator[Callable[[], object]]:
        """Yields the calls of the hooks `teardown()`, in the opposite order."""
        for owner in [*reversed(self._instances), self._module]:
            yield functools.partial(self._hook, owner, "teardown")

    def keep_context(self) -> None:
        """Saves the main thread's context after setup(). Every run starts with a copy of it."""
        self.context = contextvars.copy_context()

    def describe_types(self, validate: bool) -> None:
        """Makes the schemas of the functions. Prints which functions are untyped, and why."""
        descriptions = Descriptions(validate)
        for name, function in self._functions.items():
            untyped = function.describe_types(descriptions)
            if untyped is not None:
                print(f"{name} is untyped: {untyped}", file=sys.stderr)

    def describe(self) -> list[Description]:
        """Returns the descriptions of the public functions in `ready`."""
        return [function.describe() for function in self._functions.values()]

    def bound(self, run: Run) -> tuple[Callable[..., object], Arguments]:
        """Returns the function of a run and its checked arguments. Raises Refused."""
        function = self._functions.get(run.function)
        if function is None:
            raise Refused("not_found", f"no function {run.function}")
        params, run.params = run.params, b""
        run.media = function.media
        return function.bound(params, run.id)

    @staticmethod
    def _hook(owner: object, name: str) -> object:
        hook = getattr(owner, name, None)
        return hook() if callable(hook) else None
