# PROTOCOL.md, "Framing": a JSON header line, then exactly as many raw bytes as its `b` says.
import codecs
import json
import os

_encode_header = json.JSONEncoder(separators=(",", ":")).encode
# The decoder's C scanner: the header is the worker's own, so nothing else than a text that begins with an object is met.
_scan = json.JSONDecoder().scan_once

READ_SIZE = 64 * 1024


def _replacement(error):
    return "\ufffd".encode() * (error.end - error.start), error.end


# A lone surrogate is no Unicode text; browsers and decoders show U+FFFD for it, so that is what is sent.
codecs.register_error("harness-replace", _replacement)


def frame(header, blob=None):
    """One message as bytes; `blob`, when given, is named by `b`."""
    if blob is None:
        return _encode_header(header).encode() + b"\n"
    header["b"] = len(blob)
    return _encode_header(header).encode() + b"\n" + blob


def done_frame(quoted_run, items, streamed, elapsed, status, blob):
    """The terminal of a run that succeeded; by hand, since every call has one."""
    head = f'{{"t":"done","r":{quoted_run},"items":{items},"streamed":{"true" if streamed else "false"},"ms":{elapsed!r}'
    if status is not None:
        head += f',"status":{status}'
    if blob is None:
        return f"{head}}}\n".encode()
    return f'{head},"b":{len(blob)}}}\n'.encode() + blob


def log_frame(quoted_run, count, cut, text):
    """Lines that were printed; `quoted_run` is None where they belong to no run. `cut`: how many were left out just before them."""
    blob = text.encode("utf-8", "harness-replace")
    head = '{"t":"log"' if quoted_run is None else f'{{"t":"log","r":{quoted_run}'
    return f'{head},"n":{count},"cut":{cut},"b":{len(blob)}}}\n'.encode() + blob


def items_frame(quoted_run, kind, count, blob):
    """An items frame; by hand, since streams send thousands a second. `quoted_run` is the run id as JSON text."""
    return f'{{"r":{quoted_run},"k":"{kind}","n":{count},"b":{len(blob)}}}\n'.encode() + blob


class Reader:
    """Messages from a file descriptor, one at a time. Held by one thread at a time (the leader)."""

    def __init__(self, fd):
        self._fd = fd
        self._data = b""
        self._at = 0

    @property
    def buffered(self):
        """Whether a message, or a part of one, has already been read."""
        return self._at < len(self._data)

    def read(self):
        """The next message as (header, blob), or None at the end of the stream."""
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

    def _take(self, length):
        have = self._data[self._at : self._at + length]
        self._at += len(have)
        if len(have) == length:
            return have
        parts, missing = [have], length - len(have)
        while missing:
            chunk = os.read(self._fd, max(READ_SIZE, missing))
            if not chunk:
                return b""  # the next read() finds the end of the stream again
            if len(chunk) > missing:
                self._data, self._at = chunk, missing
                chunk = chunk[:missing]
            missing -= len(chunk)
            parts.append(chunk)
        return b"".join(parts)
