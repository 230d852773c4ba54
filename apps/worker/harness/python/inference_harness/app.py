# Contract 1: an app's module, its public functions and their parameters.
import ast
import contextvars
import functools
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import sys

from .failures import Refused
from .source import FromSource, always_compile

PUBLIC_NAME = re.compile(r"\A[A-Za-z][A-Za-z0-9_]{0,126}\Z")
_decode = json.JSONDecoder().decode

HOOKS = ("setup", "teardown")
DOC_LIMIT = 200
DEFAULT_LIMIT = 1024
DETAILS_LIMIT = 100


class Function:
    """One public function and its description in `ready`."""

    def __init__(self, name, call):
        self.name = name
        self.call = call
        self.names = set()
        # Positional-only parameters, in order.
        self.positional = []
        self.required = []
        self.extra = False
        self.parameters = []
        try:
            signature = inspect.signature(call)
        except (TypeError, ValueError):
            self.extra = True  # the signature is unknown, so Python itself checks the arguments of the call
        else:
            for parameter in signature.parameters.values():
                self._add(parameter)
        self.takes_run_id = "run_id" in self.names

    def _add(self, parameter):
        if parameter.kind is parameter.VAR_KEYWORD:
            self.extra = True
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return
        if parameter.kind is parameter.POSITIONAL_ONLY:
            self.positional.append(parameter)
        required = parameter.default is parameter.empty
        spec = {"name": parameter.name, "required": required}
        if required:
            self.required.append(parameter.name)
        else:
            _add_default(spec, parameter.default)
        if parameter.annotation is not parameter.empty:
            spec["annotation"] = inspect.formatannotation(parameter.annotation)[:DOC_LIMIT]
        self.names.add(parameter.name)
        self.parameters.append(spec)

    def describe(self):
        spec = {"name": self.name, "parameters": self.parameters, "extra": self.extra}
        doc = (inspect.getdoc(self.call) or "").strip().split("\n")[0][:DOC_LIMIT]
        if doc:
            spec["doc"] = doc
        return spec

    def bind(self, arguments):
        """Returns a callable that takes `arguments` as keywords. Removes the positional-only parameters from `arguments`."""
        given = [number for number, parameter in enumerate(self.positional) if parameter.name in arguments]
        if not given:
            return self.call
        # Every parameter before the last sent parameter needs a value too: its default.
        positional = self.positional[: given[-1] + 1]
        return functools.partial(self.call, *[arguments.pop(parameter.name, parameter.default) for parameter in positional])

    def check(self, arguments):
        """Raises Refused with every wrong parameter. `inspect.signature(...).bind(**arguments)` would name only the first."""
        details = [_detail(name, "Field required", "missing") for name in self.required if name not in arguments]
        if not self.extra and not self.names.issuperset(arguments):
            details += [_detail(name, "Unexpected parameter", "unexpected") for name in arguments if name not in self.names]
        if details:
            details = details[:DETAILS_LIMIT]  # the caller controls their number and their length
            names = ", ".join(f"{detail['loc'][1]} ({detail['type']})" for detail in details)
            raise Refused("invalid_input", f"wrong parameters for {self.name}: {names}"[:DOC_LIMIT], details)


class App:
    """The loaded module."""

    def __init__(self, folder, entry, debug):
        self.debug = debug
        self._folder = folder
        self._entry = entry
        self.functions = {}
        self._module = None
        # Every run starts with a copy of this context, so that a run sees the variables that setup() sets.
        self.context = contextvars.copy_context()

    def load(self):
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
        if spec is None:
            raise ImportError(f"{self._entry} is not a Python file")
        if type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = FromSource(name, entry)
        self._module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self._module
        spec.loader.exec_module(self._module)
        defined = _defined_names(entry)
        for key, value in list(vars(self._module).items()):
            if PUBLIC_NAME.match(key) and key not in HOOKS and _is_function(value, key in defined, name):
                self.functions[key] = Function(key, value)

    def keep_context(self):
        """Saves the main thread's context after setup(). Every run starts with a copy of it."""
        self.context = contextvars.copy_context()

    def hook(self, name):
        """Calls setup() or teardown(). Returns its result, or None if the app has no such hook."""
        hook = getattr(self._module, name, None)
        return hook() if callable(hook) else None

    def describe(self):
        return [function.describe() for function in self.functions.values()]

    def prepare(self, run):
        """Returns the function of a run and its checked arguments."""
        function = self.functions.get(run.function)
        if function is None:
            raise Refused("not_found", f"no function {run.function}")
        try:
            arguments = _decode(run.params.decode()) if run.params else {}
        except (ValueError, RecursionError):
            raise Refused("invalid_input", "the parameters are not JSON") from None
        if type(arguments) is not dict:
            raise Refused("invalid_input", "the parameters are not a JSON object")
        run.params = None
        if function.takes_run_id and "run_id" not in arguments:
            arguments["run_id"] = run.id
        function.check(arguments)
        return function.bind(arguments) if function.positional else function.call, arguments


def _detail(name, message, kind):
    return {"loc": ["body", name[:DOC_LIMIT]], "msg": message, "type": kind}


def _add_default(spec, default):
    try:
        text = json.dumps(default, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return
    if len(text) <= DEFAULT_LIMIT:
        spec["default"] = default


def _defined_names(entry):
    """Returns the names that the file binds by `def`. A decorated function may name another module as its origin."""
    with open(entry, "rb") as file:
        tree = ast.parse(file.read())
    found, open_nodes = set(), [tree]
    while open_nodes:
        for node in ast.iter_child_nodes(open_nodes.pop()):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(node.name)
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                open_nodes.append(node)
    return found


def _is_function(value, defined, module):
    if inspect.isclass(value) or not callable(value):
        return False
    return defined or (inspect.isfunction(value) and inspect.unwrap(value).__module__ == module)
