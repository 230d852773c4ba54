# Helpers of the tests of types: functions with one parameter, and their calls.
import inspect
import json

from inference_harness.failures import Refused
from inference_harness.functions import Function
from inference_harness.typed.describe import Descriptions
from inference_harness.typed.with_pydantic import pydantic


def taking(annotation, default=inspect.Parameter.empty):
    """Returns a function that returns its parameter `x`."""

    def function(x):
        return x

    function.__annotations__ = {"x": annotation}
    if default is not inspect.Parameter.empty:
        function.__defaults__ = (default,)
    return function


def result(function, **arguments):
    """Returns the result of a call with these parameters."""
    call, bound = function.bound(json.dumps(arguments).encode(), "the-run")
    return call(**bound)


def violations(function, **arguments):
    """Returns the positions, below the body, and the rules of the violations of a call."""
    try:
        result(function, **arguments)
    except Refused as error:
        assert error.code == "invalid_input"
        return [(tuple(one["loc"][1:]), one["type"]) for one in error.details]
    return []


class Environment:
    """Describes functions with or without pydantic."""

    def __init__(self, find_pydantic):
        self._find_pydantic = find_pydantic

    def described(self, call, validate=True):
        """Returns a public function whose types are described."""
        function = Function("f", call)
        function.describe_types(Descriptions(validate, self._find_pydantic))
        return function

    def schema(self, call):
        """Returns the schema of a function."""
        return self.described(call).describe()["schema"]

    def schema_of(self, annotation):
        """Returns the schema of one parameter with this annotation."""
        return self.schema(taking(annotation))["parameters"]["properties"]["x"]

    def seen(self, annotation, value):
        """Returns what a function with a parameter of this annotation sees."""
        return result(self.described(taking(annotation)), x=value)

    def refused(self, annotation, value):
        """Returns the violations of one parameter, below the parameter."""
        found = violations(self.described(taking(annotation)), x=value)
        return [(loc[1:], kind) for loc, kind in found]


STANDARD = Environment(lambda: None)
INSTALLED = Environment(pydantic)
