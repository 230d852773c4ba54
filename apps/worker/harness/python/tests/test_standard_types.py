# Contract 1, "Parameters and types": annotations that the standard library alone understands.
import collections
import dataclasses
import datetime
import decimal
import enum
import pathlib
import typing
import uuid
from typing import Any, Literal, NamedTuple, Optional, Union

from typed_functions import STANDARD, result, taking, violations

described, schema, schema_of = STANDARD.described, STANDARD.schema, STANDARD.schema_of
seen, refused = STANDARD.seen, STANDARD.refused


class Color(enum.Enum):
    RED = "red"
    TWO = 2


@dataclasses.dataclass
class Node:
    name: str
    next: Optional["Node"] = None


@dataclasses.dataclass
class Positive:
    number: int

    def __post_init__(self):
        if self.number <= 0:
            raise ValueError("not positive")


class Point(NamedTuple):
    x: int
    y: float = 1.5


class Options(typing.TypedDict, total=False):
    limit: int


def same(value, expected):
    """Compares values and their classes."""
    assert value == expected and type(value) is type(expected), (value, expected)


def test_plain_values_are_checked_and_kept():
    for annotation, value, expected in (
        (str, "a", "a"),
        (int, 2**70, 2**70),
        (int, 1.0, 1),
        (float, 1, 1.0),
        (bool, True, True),
        (type(None), None, None),
        (Any, [1, {}], [1, {}]),
        ("Unknown", "a", "a"),
    ):
        same(seen(annotation, value), expected)


def test_other_json_types_are_refused():
    for annotation, value, kind in (
        (str, 1, "string_type"),
        (int, "1", "int_type"),
        (int, True, "int_type"),
        (int, 1.5, "int_from_float"),
        (float, "1", "float_type"),
        (float, 10**400, "float_type"),
        (bool, 1, "bool_type"),
        (type(None), 0, "none_required"),
        (list, {}, "list_type"),
        (dict, [], "dict_type"),
    ):
        assert refused(annotation, value) == [((), kind)], (annotation, value)


def test_texts_become_dates_times_and_numbers():
    utc = datetime.timezone.utc
    east = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    for annotation, value, expected in (
        (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
        (datetime.time, "23:59", datetime.time(23, 59)),
        (datetime.time, "01:02:03.5Z", datetime.time(1, 2, 3, 500_000, utc)),
        (datetime.datetime, "2024-01-02 03:04", datetime.datetime(2024, 1, 2, 3, 4)),
        (
            datetime.datetime,
            "2024-01-02T03:04:05.123456789+05:30",
            datetime.datetime(2024, 1, 2, 3, 4, 5, 123_456, east),
        ),
        (datetime.timedelta, "-P1DT2H3M4.5S", -datetime.timedelta(1, 4.5, 0, 0, 3, 2)),
        (datetime.timedelta, 1.5, datetime.timedelta(seconds=1.5)),
        (
            uuid.UUID,
            "01A1fc42-ca24-7b52-9d40-3f6a2c8e5b17",
            uuid.UUID("01a1fc42ca247b529d403f6a2c8e5b17"),
        ),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
        (bytes, "größe", "größe".encode()),
    ):
        same(seen(annotation, value), expected)
    assert seen(pathlib.Path, "a/b") == pathlib.Path("a/b")


def test_texts_of_another_form_are_refused():
    for annotation, kind, values in (
        (datetime.date, "date_parsing", ("2023-02-29", "0000-01-01", "2024-1-1", "٢٠٢٤-01-01", "")),
        (datetime.time, "time_parsing", ("24:00", "12", "12:00:60", "12:00+24:00", "12:00z")),
        (
            datetime.datetime,
            "datetime_parsing",
            ("2024-01-01", "2024-01-01t00:00", "2024-01-01T00:00:00,5", "2024-01-01T00:00+01:60"),
        ),
        (datetime.timedelta, "time_delta_parsing", ("P", "PT", "P1Y", "P1W", "1", "P1DT")),
        (uuid.UUID, "uuid_parsing", ("01a1fc42ca247b529d403f6a2c8e5b17", "{}")),
        (decimal.Decimal, "decimal_parsing", ("NaN", "Infinity", "1_0", "1e", ".")),
    ):
        for value in values:
            assert refused(annotation, value) == [((), kind)], (annotation, value)


def test_members_of_enums_and_literals():
    assert seen(Color, "red") is Color.RED
    assert seen(Color, 2.0) is Color.TWO
    assert refused(Color, "blue") == [((), "enum")]
    same(seen(Literal["a", 1], 1), 1)
    assert refused(Literal["a", 1], True) == [((), "enum")]
    assert schema_of(Literal["a", "b"]) == {"enum": ["a", "b"], "type": "string"}
    assert schema_of(Color) == {"enum": ["red", 2]}


def test_containers_convert_their_members():
    same(seen(list[datetime.date], ["2024-01-01"]), [datetime.date(2024, 1, 1)])
    same(seen(set[int], [1, 1.0]), {1})
    same(seen(tuple[int, ...], [1, 2]), (1, 2))
    same(seen(tuple[int, str], [1, "a"]), (1, "a"))
    same(seen(collections.deque[int], [1]), collections.deque([1]))
    same(seen(dict[str, int], {"a": 1.0}), {"a": 1})
    same(seen(dict[int, bool], {"7": True}), {7: True})
    same(seen(dict[uuid.UUID, Any], {}), {})
    assert refused(list[int], [1, "a", 2, "b"]) == [((1,), "int_type"), ((3,), "int_type")]
    assert refused(dict[int, int], {"a": 1}) == [(("a",), "int_type")]
    assert refused(set[Any], [[]]) == [((), "set_item_not_hashable")]
    assert refused(tuple[int, str], [1]) == [((), "too_short")]
    assert refused(tuple[int, str], [1, "a", 2]) == [((), "too_long")]
    assert schema_of(tuple[int, str]) == {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "minItems": 2,
        "maxItems": 2,
    }


def test_a_union_prefers_the_member_that_fits_exactly():
    same(seen(Union[float, int], 1), 1)
    same(seen(Union[int, float], 1.0), 1.0)
    same(seen(Union[datetime.date, str], "2024-01-01"), "2024-01-01")
    same(seen(Union[int, datetime.date], "2024-01-01"), datetime.date(2024, 1, 1))
    assert seen(Optional[Color], None) is None


def test_a_union_reports_the_members_of_the_same_json_type():
    assert refused(Union[int, datetime.date], "x") == [((), "date_parsing")]
    assert refused(Optional[list[int]], ["x"]) == [((0,), "int_type")]
    assert refused(Optional[int], "x") == [((), "int_type")]
    assert refused(Union[int, str], []) == [((), "union_type")]


def test_classes_are_made_of_objects():
    same(seen(Node, {"name": "a", "next": {"name": "b"}, "more": 1}), Node("a", Node("b")))
    same(seen(Options, {"limit": 1.0, "more": 2}), {"limit": 1})
    same(seen(Point, [1]), Point(1, 1.5))
    assert refused(Node, {"next": {}}) == [(("name",), "missing"), (("next", "name"), "missing")]
    assert refused(Positive, {"number": 0}) == [((), "value_error")]


def test_only_a_class_that_contains_itself_is_a_definition():
    parameters = schema(taking(tuple[Node, Positive]))["parameters"]
    assert list(parameters["$defs"]) == ["Node"]
    node, positive = parameters["properties"]["x"]["prefixItems"]
    assert node == {"$ref": "#/$defs/Node"}
    assert positive["properties"] == {"number": {"type": "integer"}}


def test_a_default_of_none_accepts_null():
    function = described(taking(int, None))
    assert result(function, x=None) is None
    assert result(function) is None
    assert function.describe()["schema"]["parameters"]["properties"]["x"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
    }


def test_the_run_id_is_not_required_and_further_parameters_have_a_type():
    def function(run_id: str, **more: int):
        return run_id, more

    assert schema(function)["parameters"] == {
        "type": "object",
        "properties": {"run_id": {"type": "string"}},
        "required": [],
        "additionalProperties": {"type": "integer"},
    }
    assert result(described(function), a=1.0) == ("the-run", {"a": 1})
    assert violations(described(function), a="x") == [(("a",), "int_type")]


def test_at_most_twenty_violations_are_reported():
    assert len(refused(list[int], ["x"] * 100)) == 20
    assert len(violations(described(lambda: None), **{f"p{n}": 1 for n in range(100)})) == 20


def test_without_validation_only_names_are_checked():
    function = described(taking(int), validate=False)
    assert result(function, x="text") == "text"
    assert violations(function) == [(("x",), "missing")]
    assert function.describe()["schema"]["parameters"]["properties"] == {"x": {}}
