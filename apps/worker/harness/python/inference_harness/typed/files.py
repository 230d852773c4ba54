# Contract 1, "Body": the type of `typing.BinaryIO`, which receives a file of a form or a text.
from __future__ import annotations

import typing
from typing import Any

from ..uploads import FileBytes, opened
from .mismatch import mismatch
from .type import Type, of_json

FILE_KINDS = (typing.BinaryIO, typing.IO[bytes])


def _file(value: Any) -> Any:
    if not isinstance(value, (str, bytes)):
        raise mismatch("string_type", "Input should be a valid string")
    try:
        return opened(value)
    except UnicodeEncodeError:
        text = "Input should be a valid string, unable to parse raw data as a unicode string"
        raise mismatch("string_unicode", text) from None


FILE = Type({"type": "string", "format": "binary"}, _file, of_json((), (str, FileBytes)))
