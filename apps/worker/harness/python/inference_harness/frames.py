# PROTOCOL.md, "Framing": reads and writes frames.
from __future__ import annotations

import codecs
import json
import os
from typing import Any, Callable

Header = dict[str, Any]
# A header and its blob.
Message = tuple[Header, bytes]

_encode_header = json.JSONEncoder(separators=(",", ":")).encode
# The decoder's C scanner. Headers come from the worker, so the text always begins with an object.
_scan: Callable[[str, int], tuple[Header, int]] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009

READ_SIZE = 64 * 1024


def _replacement(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "\ufffd".encode() * (error.end - error.start), error.end


# A lone surrogate has no UTF-8 form. Browsers and decoders show U+FFFD for it, so the harness
# sends U+FFFD.
codecs.register_error("harness-replace", _replacement)


def frame(header: Header, blob: bytes | None = None) -> bytes:
    """Returns one message as bytes.

    Sets the header's `b` to the length of the blob, if there is one."""
    if blob is None:
        return _encode_header(header).encode() + b"\n"
    header["b"] = len(blob)
    return _encode_header(header).encode() + b"\n" + blob


def done_frame(
    quoted_run: str,
    items: int,
    streamed: bool,
    elapsed: float,
    status: int | None,
    blob: bytes | None,
) -> bytes:
    """Returns the terminal message of a successful run.

    Formats the header by hand, because every call sends this message."""
    flag = "true" if streamed else "false"
    head = f'{{"t":"done","r":{quoted_run},"items":{items},"streamed":{flag},"ms":{elapsed!r}'
    if status is not None:
        head += f',"status":{status}'
    if blob is None:
        return f"{head}}}\n".encode()
    return f'{head},"b":{len(blob)}}}\n'.encode() + blob


def log_frame(quoted_run: str | None, count: int, cut: int, text: str) -> bytes:
    """Returns a frame of printed lines.

    `quoted_run` is None if the lines belong to no run. `cut` is the number of lines dropped before
    them."""
    blob = text.encode("utf-8", "harness-replace")
    head = '{"t":"log"' if quoted_run is None else f'{{"t":"log","r":{quoted_run}'
    return f'{head},"n":{count},"cut":{cut},"b":{len(blob)}}}\n'.encode() + blob


def items_frame(quoted_run: str, kind: str, count: int, blob: bytes) -> bytes:
    """Returns an items frame. `quoted_run` is the run id as JSON text.

    Formats the header by hand, because streams send thousands a second."""
    return f'{{"r":{quoted_run},"k":"{kind}","n":{count},"b":{len(blob)}}}\n'.encode() + blob


class Reader:
    """Reads messages from a file descriptor. Only one thread at a time, the leader, uses it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._data = b""
        self._at = 0

    @property
    def buffered(self) -> bool:
        """Returns whether a message, or a part of a message, has already been read."""
        return self._at < len(self._data)

    def read(self) -> Message | None:
        """Returns the next message as (header, blob), or None at the end of the stream."""
        end = self._data.find(b"\n", self._at)
        while end == -1:
            chunk = os.read(self._fd, READ_SIZE)
            if not chunk:
                return None
            searched = len(self._data) - self._at
            self._data = self._data[self._at :] + chunk if searched else chunk
            self._at = 0
            end = self._data.find(b"\n", searched)
        header = _scan(self._data[self._at : end].decode(), 0)[0]
        self._at = end + 1
        length = header.get("b")
        return header, b"" if length is None else self._take(length)

    def _take(self, length: int) -> bytes:
        have = self._data[self._at : self._at + length]
        self._at += len(have)
        if len(have) == length:
            return have
        parts, missing = [have], length - len(have)
        while missing:
            chunk = os.read(self._fd, max(READ_SIZE, missing))
            if not chunk:
                return b""  # the next read() meets the end of the stream again
            if len(chunk) > missing:
                self._data, self._at = chunk, missing
                chunk = chunk[:missing]
            missing -= len(chunk)
            parts.append(chunk)
        return b"".join(parts)
