# Contract 1, "Parameters and types": types of the standard library whose JSON form is a text or a
# number. docs/apps/types.md has the accepted forms. The gateway checks the same forms.
from __future__ import annotations

import datetime
import decimal
import pathlib
import re
import uuid
from typing import Any, Callable, cast

from ..uploads import FileBytes
from .mismatch import Mismatch, mismatch
from .type import NO_MEMBER, Convert, Schema, Type, of_json

DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
TIME = re.compile(
    r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:(Z)|([+-])(\d{2}):(\d{2}))?", re.ASCII
)
# pydantic's time in seconds, without the days, has 32 bits.
DURATION = re.compile(
    r"(-)?P(?=\d|T\d)(?:(\d{1,8})D)?"
    r"(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,8})(?:\.(\d{1,6}))?S)?)?",
    re.ASCII,
)
UUID = re.compile(
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.I | re.ASCII
)
DECIMAL = re.compile(
    r"^[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?$", re.ASCII
)

# The largest timedelta is 999,999,999 days.
LONGEST_S = 999_999_999 * 86_400

NUMBER_OF_SECONDS: Schema = {"type": "number", "minimum": -LONGEST_S, "maximum": LONGEST_S}


def _date(text: str) -> datetime.date:
    year, month, day = _matched(DATE, text)
    return datetime.date(int(year or 0), int(month or 0), int(day or 0))


def _time(text: str) -> datetime.time:
    hour, minute, second, fraction, utc, sign, hours, minutes = _matched(TIME, text)
    zone: datetime.tzinfo | None = None
    if utc is not None:
        zone = datetime.timezone.utc
    elif sign is not None:
        if int(minutes or 0) > 59:
            raise ValueError("the minutes of the offset are over 59")
        offset = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = datetime.timezone(-offset if sign == "-" else offset)
    micro = int((fraction or "0")[:6].ljust(6, "0"))
    return datetime.time(int(hour or 0), int(minute or 0), int(second or 0), micro, zone)


def _date_time(text: str) -> datetime.datetime:
    if text[10:11] not in ("T", " "):
        raise ValueError("T or a space is missing")
    return datetime.datetime.combine(_date(text[:10]), _time(text[11:]))


def _duration(text: str) -> datetime.timedelta:
    sign, days, hours, minutes, seconds, fraction = _matched(DURATION, text)
    value = datetime.timedelta(
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        microseconds=int((fraction or "0").ljust(6, "0")),
    )
    return -value if sign else value


def _uuid(text: str) -> uuid.UUID:
    _matched(UUID, text)
    return uuid.UUID(text)


def _decimal_of(text: str) -> decimal.Decimal:
    _matched(DECIMAL, text)
    return decimal.Decimal(text)


def _matched(pattern: re.Pattern[str], text: str) -> tuple[str | None, ...]:
    """Returns the groups of a whole text. Raises ValueError."""
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError("the form is wrong")
    return found.groups()


def _from_text(make: Callable[[str], object], refused: Callable[[], Mismatch]) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, str):
            raise _no_text()
        try:
            return make(value)
        except (ValueError, OverflowError):  # such as a 30th of February
            raise refused() from None

    return convert


def _no_text() -> Mismatch:
    return mismatch("string_type", "Input should be a valid string")


def _or_number(from_text: Convert, from_number: Callable[[Any], object], name: str) -> Convert:
    """Returns a conversion of texts and of numbers."""

    def convert(value: Any) -> Any:
        if type(value) is not int and type(value) is not float:
            if isinstance(value, str):
                return from_text(value)
            raise mismatch(*NO_MEMBER)
        try:
            return from_number(value)
        except (ValueError, OverflowError):
            raise _wrong(name)() from None

    return convert


_KINDS = {
    "date": "date",
    "time": "time",
    "datetime": "datetime",
    "duration": "time_delta",
    "UUID": "uuid",
    "decimal": "decimal",
}


def _wrong(name: str) -> Callable[[], Mismatch]:
    return lambda: mismatch(f"{_KINDS[name]}_parsing", f"Input should be a valid {name}")


def _text_type(name: str, format: str, make: Callable[[str], object]) -> Type:
    schema = {"type": "string", "format": format}
    return Type(schema, _from_text(make, _wrong(name)), of_json((), (str,)))


_from_duration = _from_text(_duration, _wrong("duration"))
_from_decimal = _from_text(_decimal_of, _wrong("decimal"))


def _decimal(value: float) -> decimal.Decimal:
    made = decimal.Decimal(str(value))
    if not made.is_finite():
        raise ValueError
    return made


def _bytes(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return bytes(cast("bytes", value))  # a file of a form
    if not isinstance(value, str):
        raise _no_text()
    try:
        return value.encode()
    except UnicodeEncodeError:
        text = "Input should be a valid string, unable to parse raw data as a unicode string"
        raise mismatch("string_unicode", text) from None


def _path(value: Any) -> Any:
    if isinstance(value, str):
        return pathlib.Path(value)
    raise _no_text()


_PATH = Type({"type": "string", "format": "path"}, _path, of_json((), (str,)))

SCALARS: dict[object, Type] = {
    datetime.date: _text_type("date", "date", _date),
    datetime.time: _text_type("time", "time", _time),
    datetime.datetime: _text_type("datetime", "date-time", _date_time),
    datetime.timedelta: Type(
        {"anyOf": [{"type": "string", "format": "duration"}, NUMBER_OF_SECONDS]},
        _or_number(_from_duration, lambda value: datetime.timedelta(seconds=value), "duration"),
        of_json((), (str, int, float)),
    ),
    uuid.UUID: _text_type("UUID", "uuid", _uuid),
    decimal.Decimal: Type(
        {"anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}]},
        _or_number(_from_decimal, _decimal, "decimal"),
        of_json((), (str, int, float)),
    ),
    bytes: Type(
        {"type": "string", "format": "binary"}, _bytes, of_json((), (str, bytes, FileBytes))
    ),
    pathlib.Path: _PATH,
    pathlib.PurePath: _PATH,
}
