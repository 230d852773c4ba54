# Contract 2, "Values that are not plain JSON": how results and items are encoded.
import dataclasses
import datetime
import decimal
import enum
import gc
import json
import pathlib
import uuid
import weakref
from collections import OrderedDict, deque, namedtuple
from http import HTTPStatus

from inference_harness import jsonable
from inference_harness.output import Unserializable, encode, encode_result
from inference_harness.values import is_stream
from parts import raised
from test_produce import Served

Point = namedtuple("Point", "x y")


class Color(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):
    YES = "yes"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Inner:
    when: object


@dataclasses.dataclass
class Answer:
    items: list
    status_code: int = 201


UID = uuid.UUID("01a1fc42-ca24-7b52-9d40-3f6a2c8e5b17")
NOON = datetime.datetime(2026, 11, 21, 12, 0, 0, 250000, tzinfo=datetime.timezone.utc)

VALUES = [
    (Color.RED, '"red"'),
    (Word.YES, '"yes"'),
    (Level.HIGH, "3"),
    (NOON, '"2026-11-21T12:00:00.250000+00:00"'),
    (datetime.date(2026, 11, 21), '"2026-11-21"'),
    (datetime.time(4, 5), '"04:05:00"'),
    (datetime.timedelta(minutes=1, milliseconds=500), "60.5"),
    (decimal.Decimal("1.50"), "1.5"),
    (decimal.Decimal("12"), "12"),
    (UID, f'"{UID}"'),
    (pathlib.PurePosixPath("/tmp/a"), '"/tmp/a"'),
    ({1}, "[1]"),
    (frozenset(["a"]), '["a"]'),
    (Point(1, 2), "[1,2]"),
    (deque([1, 2]), "[1,2]"),
    ("é".encode(), '"é"'),
    (bytearray(b"a"), '"a"'),
    (memoryview(b"a"), '"a"'),
    (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    (Answer([Inner(Color.RED)]), '{"items":[{"when":"red"}],"status_code":201}'),
    ({UID: 1, Color.RED: 2, Word.YES: 3, 4: 5, None: 6}, None),
    ({"deep": [{(datetime.date(2026, 1, 2)): {1}}]}, '{"deep":[{"2026-01-02":[1]}]}'),
]


def test_values_are_encoded_as_fastapi_encodes_them():
    for value, text in VALUES:
        if text is not None:
            assert encode(value) == text, value
            assert encode_result(value)[0] == text, value
            assert encode([value]) == f"[{text}]", value


def test_keys_of_objects_are_encoded_too():
    keys = {UID: 1, Color.RED: 2, Word.YES: 3, 4: 5, None: 6}
    assert json.loads(encode(keys)) == {str(UID): 1, "red": 2, "yes": 3, "4": 5, "null": 6}


def test_models_dataclasses_and_arrays_are_values_and_iterators_are_streams():
    @dataclasses.dataclass
    class Row:
        a: int

        def __iter__(self):
            return iter([self.a])

    @dataclasses.dataclass
    class Steps:
        left: int

        def __iter__(self):
            return self

        def __next__(self):
            raise StopIteration

    assert not is_stream(Row(1))
    assert not is_stream(deque([1]))
    assert not is_stream(memoryview(b"a"))
    assert is_stream(Steps(1))
    assert is_stream(iter([1]))
    assert is_stream(range(2))


def message(value, encoded=encode_result):
    return str(raised(Unserializable, encoded, value))


def test_an_error_names_type_and_place():
    inner = {"items": [1, 2, 3, Inner(1j)]}
    assert message(inner) == (
        "result.items[3].when: complex is not JSON; the result is of type dict"
    )
    assert message(Answer([1j])) == (
        "result.items[0]: complex is not JSON; the result is of type Answer"
    )
    assert message(1j) == "result: complex is not JSON"
    assert message([object()], encode) == "item[0]: object is not JSON; the item is of type list"
    assert message({"a b": {1j}}).startswith('result["a b"][0]: complex is not JSON')
    assert message({1j: 1}).startswith("a key of result: complex is not JSON")
    assert message({(1, 2): 1}).startswith("a key of result: tuple is not JSON")


def test_numbers_that_json_cannot_express_are_errors():
    assert message(float("nan")) == "result: float nan is not JSON"
    assert message([float("inf")]).startswith("result[0]: float inf is not JSON")
    assert message(decimal.Decimal("NaN")) == "result: Decimal NaN is not JSON"
    assert message(decimal.Decimal("1E+999999999")) == "result: Decimal has more than 4300 digits"
    assert message({float("nan"): 1}).startswith("a key of result: float nan is not JSON")


def test_bytes_that_are_not_utf8_are_an_error_with_a_hint():
    assert message({"photo": b"\xff"}).startswith(
        "result.photo: bytes is not UTF-8: give base64 text, or declare a media type"
    )


def test_an_output_without_end_is_an_error():
    endless = []
    endless.append(endless)
    assert message(endless) == "the output is nested too deeply"
    wrapped = Inner(None)
    wrapped.when = wrapped
    assert "Inner" in message(wrapped) or "nested" in message(wrapped)


def test_a_value_that_cannot_be_read_is_an_error():
    class Odd(dict):
        def items(self):
            raise RuntimeError("not now")

    assert "Odd" in message(Odd(a=1))


def test_a_long_place_is_cut():
    value = 1j
    for _ in range(200):
        value = {"a_long_name_of_a_member": value}
    assert len(message(value)) < 700


def test_a_status_code_of_a_dataclass_sets_the_status():
    assert encode_result(Answer([]))[1] == 201
    assert encode_result({"status_code": HTTPStatus.CREATED})[1] == 201
    assert encode_result(Answer([], 204))[1] is None
    assert encode_result(Answer([], True))[1] is None
    assert encode_result([Answer([])])[1] is None


def test_a_member_of_a_str_enum_is_a_string_item():
    def generator():
        yield Word.YES
        yield Color.RED

    served = Served(generator)
    assert served.end()["items"] == 2
    assert served.channel.items() == ["yes", '"red"']


def test_classes_that_an_app_makes_while_it_runs_are_freed():
    def made():
        cls = dataclasses.make_dataclass("Short", ["a"])
        assert encode(cls(1)) == '{"a":1}'
        assert not is_stream(cls(1))
        return weakref.ref(cls)

    short = made()
    gc.collect()
    assert short() is None


def test_no_library_is_imported_for_its_values():
    source = open(jsonable.__file__).read()
    assert "import numpy" not in source and "import pydantic" not in source
