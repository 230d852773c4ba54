# Contract 1, "Body": the files of a form, as the function receives them. PROTOCOL.md, "Parameters
# with files".
from __future__ import annotations

import io
import json
from typing import Any, Union, cast

from .logs import current_run

# A larger file is spooled to disk.
MEMORY_LIMIT = 1024 * 1024

# Begins parameters with files. JSON cannot begin with this byte.
MARK = b"\0"

Arguments = dict[str, Any]


class FileBytes(bytes):
    """The content of a file, before the conversion to the type of its parameter."""

    name: str
    content_type: str

    def __new__(cls, content: bytes, name: str, content_type: str) -> FileBytes:
        """Copies the content."""
        made = super().__new__(cls, content)
        made.name = name
        made.content_type = content_type
        return made


class MemoryFile(io.BytesIO):
    """A small file."""

    def __init__(self, content: bytes, name: str, content_type: str) -> None:
        super().__init__(content)
        self.name = name
        self.content_type = content_type


class SpooledFile(io.BufferedRandom):
    """A file on disk.

    The file has no entry in its folder, so the system removes it when it is closed and when the
    process is killed."""

    def __init__(self, content: bytes, name: str, content_type: str) -> None:
        from tempfile import TemporaryFile  # its import takes milliseconds

        raw = TemporaryFile(buffering=0)
        try:
            super().__init__(raw)
            self.write(content)
            self.seek(0)
        except BaseException:
            raw.close()
            raise
        self._name = name
        self.content_type = content_type

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Returns the name that the caller sent."""
        return self._name


FormFile = Union[MemoryFile, SpooledFile]


def opened(value: str | bytes) -> FormFile:
    """Returns a file object for a file, or for text that came in place of a file.

    The end of the run closes the file."""
    content = value.encode() if isinstance(value, str) else value
    name: str = getattr(value, "name", "")
    content_type: str = getattr(value, "content_type", "text/plain")
    kind = SpooledFile if len(content) > MEMORY_LIMIT else MemoryFile
    file = kind(content, name, content_type)
    run = current_run.get()
    if run is not None:
        run.files.append(file)
    return file


def decoded(params: bytes) -> Arguments:
    """Returns the parameters with their files as FileBytes."""
    end = params.index(b"\n")
    head: dict[str, Any] = json.loads(params[1:end])
    named: Arguments = head["parameters"]
    at = end + 1
    for file in cast("list[dict[str, Any]]", head["files"]):
        content = params[at : at + file["bytes"]]
        at += file["bytes"]
        value = FileBytes(content, file["name"], file["content_type"])
        if file.get("list"):
            named.setdefault(file["parameter"], []).append(value)
        else:
            named[file["parameter"]] = value
    return named
