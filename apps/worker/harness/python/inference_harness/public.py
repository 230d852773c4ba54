# Contract 1: finds the public functions of an app's module: functions, callable objects and the
# methods of app classes.
from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from types import FunctionType, ModuleType
from typing import Any, Callable, NamedTuple

from .names import Names

PUBLIC_NAME = re.compile(r"\A[A-Za-z][A-Za-z0-9_]{0,126}\Z")

HOOKS = ("setup", "teardown")

_PROPERTIES = (property, functools.cached_property)
_METHODS = (FunctionType, staticmethod, classmethod, functools.partialmethod)


class AppClass(NamedTuple):
    """A class with `setup()`. The process makes one instance, and serves these methods."""

    cls: type
    methods: list[str]


class Public:
    """What an app's module serves."""

    def __init__(self, module: ModuleType, names: Names, folder: str) -> None:
        self._module = module
        self._names = names
        self._folder = folder
        self.functions: dict[str, Callable[..., object]] = {}
        self.classes: list[AppClass] = []
        # Why parts of the module are not served, for the app's author.
        self.notes: list[str] = []
        members = {key: value for key, value in vars(module).items() if _is_public(key)}
        for key, value in members.items():
            if self._is_function(key, value):
                self.functions[key] = value
        self._add_classes(members)

    def _is_function(self, key: str, value: Any) -> bool:
        if inspect.isclass(value) or not callable(value):
            return False
        if key in self._names.functions:
            return True
        if inspect.isfunction(value):
            return inspect.unwrap(value).__module__ == self._module.__name__
        if key not in self._names.variables:
            return False
        return isinstance(value, functools.partial) or inspect.ismethod(value) or self._calls(value)

    def _calls(self, value: object) -> bool:
        """Returns whether the app's own code makes the object callable.

        A neural network is callable too, by the code of its library."""
        for base in type(value).__mro__:
            if "__call__" in vars(base):
                return self._is_own(base)
        return False

    def _is_own(self, cls: type) -> bool:
        """Returns whether a file of the app defines the class."""
        if cls.__module__ == self._module.__name__:
            return True
        file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
        return file.startswith(self._folder + os.sep) and "site-packages" not in file.split(os.sep)

    # -- classes ----------------------------------------------------------------------------------

    def _add_classes(self, members: dict[str, Any]) -> None:
        # By identity: a second name of a class is no second class.
        found = {id(one): one for one in members.values() if self._is_app_class(one)}
        taken = dict.fromkeys(self.functions, "a function")
        for cls in found.values():
            if any(other is not cls and issubclass(other, cls) for other in found.values()):
                continue  # only a base of another class
            reason = self._unservable(cls)
            if reason is not None:
                self.notes.append(f"the class {cls.__name__} is not served: {reason}")
                continue
            methods: list[str] = []
            for name in self._methods(cls):
                if name in taken:
                    method = f"{cls.__name__}.{name}"
                    self.notes.append(
                        f"the method {method} is not served: {taken[name]} has the same name"
                    )
                else:
                    taken[name] = f"a method of {cls.__name__}"
                    methods.append(name)
            self.classes.append(AppClass(cls, methods))

    def _is_app_class(self, value: Any) -> bool:
        return (
            inspect.isclass(value)
            and value.__module__ == self._module.__name__
            and _is_public(value.__name__)
            and callable(getattr(value, "setup", None))
            and not inspect.isabstract(value)
        )

    def _unservable(self, cls: type) -> str | None:
        for key, value in vars(self._module).items():
            owner = value.__self__ if inspect.ismethod(value) else value
            if type(owner) is cls:
                return f"{key} is already an instance of the class or belongs to an instance"
        try:
            inspect.signature(cls).bind()
        except TypeError:
            return "its constructor needs arguments"
        except ValueError:
            pass  # the signature is unknown, so the call itself decides
        return None

    def _methods(self, cls: type) -> list[str]:
        """Returns the public methods that the app's own code defines, in the order of the file."""
        found: dict[str, None] = {}
        for base in cls.__mro__:
            if not self._is_own(base):
                continue
            own = base.__module__ == self._module.__name__
            by_def = self._names.methods.get(base.__name__, set()) if own else set[str]()
            for name, value in vars(base).items():
                if not _is_public(name) or isinstance(value, _PROPERTIES):
                    continue
                if isinstance(value, _METHODS) or name in by_def:
                    found[name] = None
        return list(found)


def _is_public(name: str) -> bool:
    return PUBLIC_NAME.match(name) is not None and name not in HOOKS
