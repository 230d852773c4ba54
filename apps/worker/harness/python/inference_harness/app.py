# Contract 1: an app's module and its public functions.
from __future__ import annotations

import ast
import contextvars
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys
from types import ModuleType
from typing import Any, Callable

from .failures import Refused
from .functions import Arguments, Description, Function
from .run import Run
from .source import FromSource, always_compile
from .typed.describe import Descriptions

PUBLIC_NAME = re.compile(r"\A[A-Za-z][A-Za-z0-9_]{0,126}\Z")

HOOKS = ("setup", "teardown")


class App:
    """The loaded module."""

    def __init__(self, folder: str, entry: str) -> None:
        self._folder = folder
        self._entry = entry
        self._functions: dict[str, Function] = {}
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
        defined = _defined_names(entry)
        for key, value in list(vars(module).items()):
            if not PUBLIC_NAME.match(key) or key in HOOKS:
                continue
            if _is_function(value, key in defined, name):
                self._functions[key] = Function(key, value)

    def keep_context(self) -> None:
        """Saves the main thread's context after setup(). Every run starts with a copy of it."""
        self.context = contextvars.copy_context()

    def hook(self, name: str) -> Any:
        """Calls setup() or teardown(). Returns its result, or None if the app has no such hook."""
        hook = getattr(self._module, name, None)
        return hook() if callable(hook) else None

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
        return function.bound(params, run.id)


def _defined_names(entry: str) -> set[str]:
    """Returns the names that the file binds by `def`.

    A decorated function may name another module as its origin."""
    with open(entry, "rb") as file:
        tree = ast.parse(file.read())
    found: set[str] = set()
    open_nodes: list[ast.AST] = [tree]
    while open_nodes:
        for node in ast.iter_child_nodes(open_nodes.pop()):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(node.name)
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                open_nodes.append(node)
    return found


def _is_function(value: Any, defined: bool, module: str) -> bool:
    if inspect.isclass(value) or not callable(value):
        return False
    return defined or (inspect.isfunction(value) and inspect.unwrap(value).__module__ == module)
