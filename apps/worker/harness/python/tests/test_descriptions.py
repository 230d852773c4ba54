# Contract 1, "Parameters and types": what the harness reports of a function.
import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator
from typing import Optional

from inference_harness.functions import Function
from inference_harness.typed.describe import Descriptions
from inference_harness.typed.docstrings import parsed
from typed_functions import STANDARD

schema = STANDARD.schema


def test_the_kind_and_the_output_are_described():
    def value() -> int: ...

    async def awaited() -> int: ...

    def returns_awaitable() -> Awaitable[int]: ...

    def yields() -> Iterator[int]:
        yield 1

    async def yields_async() -> AsyncIterator[int]:
        yield 1

    def returns_generator() -> Generator[int, None, None]: ...

    def plain_generator():
        yield 1

    for call in (value, awaited, returns_awaitable):
        assert schema(call)["kind"] == "value", call
        assert schema(call)["returns"] == {"type": "integer"}, call
    for call in (yields, yields_async, returns_generator):
        assert schema(call)["kind"] == "stream", call
        assert schema(call)["item"] == {"type": "integer"}, call
    assert schema(plain_generator) == {
        "kind": "stream",
        "parameters": {
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        },
    }


GOOGLE = """Resizes an image.

    Works on a copy.

    Args:
        width (int): pixels of
            the result
        height: pixels too

    Returns:
        the image
    """
NUMPY = """Resizes an image.

    Works on a copy.

    Parameters
    ----------
    width : int
        pixels of
        the result
    height : int, optional
        pixels too

    Returns
    -------
    Image
        the image
    """
REST = """Resizes an image.

    Works on a copy.

    :param int width: pixels of
        the result
    :param height: pixels too
    :type height: int
    :returns: the image
    """


def test_docstrings_in_three_styles_describe_parameters():
    for text in (GOOGLE, NUMPY, REST):
        found = parsed(text)
        assert found.summary == "Resizes an image.", text
        assert found.description == "Works on a copy.", text
        assert found.parameters == {"width": "pixels of the result", "height": "pixels too"}, text


def test_other_sections_stay_in_the_description():
    found = parsed("Does.\n\nRaises:\n    ValueError: never\n\nReturns:\n    nothing")
    assert found.description == "Raises:\n    ValueError: never"


def test_parameter_descriptions_are_in_the_schema():
    def resize(width: int, height: Optional[int] = 3): ...

    resize.__doc__ = GOOGLE
    found = schema(resize)
    assert found["summary"] == "Resizes an image."
    assert found["parameters"]["properties"]["width"] == {
        "type": "integer",
        "description": "pixels of the result",
    }
    assert found["parameters"]["properties"]["height"]["default"] == 3


def doubled(times):
    """Returns a class whose schema doubles `times` times."""
    made = dataclasses.make_dataclass("C", [("a", int)])
    for _ in range(times):
        made = dataclasses.make_dataclass("C", [("a", made), ("b", list[made])])
    return made


def test_a_schema_over_the_limit_makes_the_function_untyped():
    large = doubled(60)

    def too_large(x: large): ...

    def small(x: dict[str, int]): ...

    descriptions = Descriptions(True)
    for call in (too_large, small):
        function = Function(call.__name__, call)
        reason = function.describe_types(descriptions)
        spec = function.describe()
        assert ("schema" in spec) is (call is small), spec
        assert spec.get("untyped") == reason
    assert "at most 262144 bytes" in Descriptions(True).of(too_large).untyped


def test_a_class_that_cannot_be_described_makes_the_function_untyped():
    class Broken(type):
        def __instancecheck__(cls, other):
            raise RuntimeError("no")

        @property
        def __mro__(cls):
            raise RuntimeError("broken class")

    class Bad(metaclass=Broken):
        @property
        def __dataclass_fields__(self): ...

    def function(x: Bad): ...

    untyped = Descriptions(True).of(function).untyped
    assert untyped is not None and "broken class" in untyped, untyped


def test_annotations_and_defaults_that_raise_are_described():
    class Silent(dict):
        def __repr__(self):
            raise RuntimeError("no text")

        def items(self):
            raise RuntimeError("no items")

    class Leaving(type):
        def __getattr__(cls, name):
            sys.exit(3)

    class Left(metaclass=Leaving): ...

    deep = int
    for _ in range(1000):
        deep = list[deep]

    def silent(x: Silent(a=1) = Silent(a=1)): ...  # noqa: B008

    def recursive(x: deep): ...

    def leaving(x: Left): ...

    for call in (silent, recursive, leaving):
        function = Function("f", call)
        function.describe_types(Descriptions(True))
        assert json.dumps(function.describe()), call
