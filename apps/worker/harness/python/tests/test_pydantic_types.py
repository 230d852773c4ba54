# Contract 1, "Parameters and types": annotations that pydantic understands. Without pydantic, this
# file has no tests. test/documents/types.test.ts runs it with pydantic 1.10 and 2.
import dataclasses
import datetime
import decimal
import importlib.util
import typing
import uuid
from typing import Annotated, Any, BinaryIO, Literal, Optional, Union

from inference_harness.typed import describe
from inference_harness.typed.parameters import parameters_of
from test_uploads import body, bound
from typed_functions import INSTALLED, result, taking, violations

described, schema, schema_of = INSTALLED.described, INSTALLED.schema, INSTALLED.schema_of
seen, refused = INSTALLED.seen, INSTALLED.refused

if importlib.util.find_spec("pydantic") is not None:
    import pydantic
    from inference_harness.typed.by_pydantic import pydantic_parameters
    from pydantic import BaseModel, Field

    TWO = pydantic.VERSION >= "2"

    class Item(BaseModel):
        name: str
        parts: list["Item"] = []
        made: Optional[datetime.date] = None

    class Named(BaseModel):
        count: int = Field(3, alias="COUNT")

        if TWO:
            model_config = {"populate_by_name": True}
        else:

            class Config:
                allow_population_by_field_name = True

    class Tagged(BaseModel):
        tags: list[str]

        if TWO:

            @pydantic.field_validator("tags", mode="before")
            @classmethod
            def split(cls, value):
                return value.split(",") if isinstance(value, str) else value

        else:

            @pydantic.validator("tags", pre=True)
            def split(cls, value):
                return value.split(",") if isinstance(value, str) else value

    class Even(BaseModel):
        number: int

        if TWO:

            @pydantic.field_validator("number")
            @classmethod
            def check(cls, value):
                assert value % 2 == 0, "odd"
                return value

        else:

            @pydantic.validator("number")
            def check(cls, value):
                assert value % 2 == 0, "odd"
                return value

    @dataclasses.dataclass
    class Node:
        name: str
        next: Optional["Node"] = None

    class Unknown:
        pass

    MADE = Field(default_factory=lambda: [1])

    def test_models_arrive_as_models():
        assert seen(Item, {"name": "a", "made": "2024-02-29", "parts": [{"name": "b"}]}) == Item(
            name="a", made=datetime.date(2024, 2, 29), parts=[Item(name="b")]
        )
        assert refused(Item, {"parts": [{}]}) == [
            (("name",), "missing"),
            (("parts", 0, "name"), "missing"),
        ]

    def test_a_model_that_contains_itself_is_a_local_definition():
        parameters = schema(taking(Item))["parameters"]
        assert parameters["properties"]["x"] == {"$ref": "#/$defs/Item"}
        item = parameters["$defs"]["Item"]
        assert item["properties"]["parts"]["items"] == {"$ref": "#/$defs/Item"}
        assert item["properties"]["made"]["anyOf"] == [
            {"type": "string", "format": "date"},
            {"type": "null"},
        ]
        assert item["required"] == ["name"]

    def test_a_model_that_does_not_contain_itself_is_inlined():
        parameters = schema(taking(list[Even]))["parameters"]
        assert "$defs" not in parameters
        assert parameters["properties"]["x"]["items"]["properties"]["number"] == {"type": "integer"}

    def test_a_dataclass_that_contains_itself_is_converted():
        assert seen(Node, {"name": "a", "next": {"name": "b"}}) == Node("a", Node("b"))
        assert refused(Node, {"next": None}) == [(("name",), "missing")]

    def test_fields_have_constraints_descriptions_and_defaults():
        def function(
            a: Annotated[int, Field(ge=1, description="at least one")],
            b: int = Field(640, le=1000),
            c: int = Field(..., gt=0),
            d: list = MADE,
        ):
            return [a, b, c, d]

        spec = described(function).describe()
        parameters = spec["schema"]["parameters"]
        assert parameters["required"] == ["a", "c"]
        assert [one["required"] for one in spec["parameters"]] == [True, False, True, False]
        assert spec["parameters"][1]["default"] == 640
        found = parameters["properties"]
        assert found["a"] == {"type": "integer", "minimum": 1, "description": "at least one"}
        assert found["b"] == {"type": "integer", "maximum": 1000, "default": 640}
        assert found["c"] == {"type": "integer", "exclusiveMinimum": 0}
        assert result(described(function), a=1, c=2) == [1, 640, 2, [1]]
        assert len(violations(described(function), a=0, b=1001, c=0)) == 3
        assert violations(described(function), a=1) == [(("c",), "missing")]

    def test_rules_of_validators_are_judged_by_the_process():
        assert schema_of(Even)["properties"] == {"number": {"type": "integer"}}
        assert [loc for loc, _ in refused(Even, {"number": 1})] == [("number",)]

    def test_a_value_that_a_validator_sees_first_may_have_any_type():
        assert schema_of(Tagged)["properties"]["tags"]["anyOf"][-1] == {}
        assert seen(Tagged, {"tags": "a,b"}) == Tagged(tags=["a", "b"])

    def test_a_model_with_further_names_of_fields_accepts_them():
        assert {"type": "object"} in schema_of(Named)["anyOf"]
        assert seen(Named, {"count": 5}).count == seen(Named, {"COUNT": 5}).count == 5

    def test_an_unknown_class_accepts_any_value_beside_models():
        def function(item: Item, odd: Unknown, call: typing.Callable, more: int = 1, **rest: Item):
            return [item.name, odd, call, more, rest]

        found = described(function)
        assert result(found, item={"name": "a"}, odd=[1], call=2, z={"name": "b"}) == [
            "a",
            [1],
            2,
            1,
            {"z": Item(name="b")},
        ]
        assert violations(found, item={}, odd=1, call=1, z={}) == [
            (("item", "name"), "missing"),
            (("z", "name"), "missing"),
        ]

    def test_a_default_of_none_accepts_null():
        assert result(described(taking(Item, None)), x=None) is None
        assert result(described(taking(Item, None))) is None
        assert refused(Item, None) != []

    def test_results_and_items_have_schemas():
        def function() -> list[Even]: ...

        assert schema(function)["returns"]["items"]["properties"]["number"]["type"] == "integer"

    def test_simple_annotations_have_the_schemas_of_pydantic():
        """The harness does not import pydantic for these annotations."""
        for annotation in (
            str,
            int,
            float,
            bool,
            Any,
            list[int],
            dict[str, float],
            set[str],
            tuple[int, str],
            tuple[int, ...],
            Optional[int],
            Union[int, str, None],
            Literal["a", "b"],
            datetime.date,
            datetime.time,
            datetime.datetime,
            datetime.timedelta,
            uuid.UUID,
            decimal.Decimal,
            bytes,
            dict[str, list[Optional[datetime.datetime]]],
        ):
            call = taking(annotation)
            named, extra = parameters_of(describe.inspect.signature(call), call.__annotations__, {})
            by_pydantic = pydantic_parameters(named, extra, pydantic).schema["properties"]["x"]
            assert schema_of(annotation) == by_pydantic, annotation

    def test_files_of_forms_beside_models():
        def function(
            item: Item,
            small: bytes,
            files: list[bytes],
            file: BinaryIO,
            other: Optional[BinaryIO] = None,
        ):
            return item.name, small, files, file.read(), other and other.read()

        files = [
            ("small", b"\xff1", {}),
            ("files", b"\xff2", {"list": True}),
            ("file", b"\xff3", {}),
            ("other", b"\xff4", {}),
        ]
        given = body({"item": {"name": "n"}}, *files)
        assert bound(function, given) == ("n", b"\xff1", [b"\xff2"], b"\xff3", b"\xff4")
        assert bound(function, body({"item": {"name": "n"}}, *files[:3]))[-1] is None
        properties = schema(function)["parameters"]["properties"]
        assert properties["file"] == {"type": "string", "format": "binary"}
        assert properties["small"]["format"] == "binary"
