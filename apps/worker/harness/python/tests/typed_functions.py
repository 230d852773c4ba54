# Helpers of the tests of types: functions with one parameter, and their calls.
import inspect
import json

from inference_harness.failures import Refused
from inference_harness.functions import Function
from inference_harness.typed.describe import Descriptions


def taking(annotation, default=inspect.Parameter.empty):
    """Returns a function that returns its parameter `x`."""

    def function(x):
        return x

    function.__annotations__ = {"x": annotation}
    if default is not inspect.Parameter.empty:
        function.__defaults__ = (default,)
    return function


def described(call, validate=True):
    """Returns a public function whose types are described."""
    function = Function("f", call)
    function.describe_types(Descriptions(validate))
    return function


def schema(call):
    """Returns the schema of a function."""
    return described(call).describe()["schema"]


def schema_of(annotation):
    """Returns the schema of one parameter with this annotation."""
    return schema(taking(annotation))["parameters"]["properties"]["x"]


def result(function, **arguments):
    """Returns the result of a call with these parameters."""
    call, bound = function.bound(json.dumps(arguments).encode(), "the-run")
    return call(**bound)


def seen(annotation, value):
    """Returns what a function with a parameter of this annotation sees."""
    return result(described(taking(annotation)), x=value)


def violations(function, **arguments):
    """Returns the positions, below the body, and the rules of the violations of a call."""
    try:
        result(function, **arguments)
    except Refused as error:
        assert error.code == "invalid_input"
        return [(tuple(one["loc"][1:]), one["type"]) for one in error.details]
    return []


def refused(annotation, value):
    """Returns the violations of one parameter, below the parameter."""
    return [(loc[1:], kind) for loc, kind in violations(described(taking(annotation)), x=value)]
