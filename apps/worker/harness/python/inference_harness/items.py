# PROTOCOL.md, "Items" and "Pace": the items of a stream between the function and the channel, and
# the credit for further items. Shared by the thread that drives the run, the thread that reads
# credits, and the ticker.
from __future__ import annotations

import sys
from collections import deque
from threading import Lock
from typing import Callable, Literal

from .channel import Channel
from .frames import items_frame
from .limits import Limits
from .output import TooLarge, json_bytes, string_bytes
from .printed import Printed

FIRST_WINDOW = 256
LARGEST_WINDOW = 4096
WINDOW_BYTES = 1024 * 1024
# The most items in one frame. The worker limits a frame's bytes, and empty items have none.
FRAME_ITEMS = 32 * 1024

# The largest number of bytes that one character of an item takes: JSON sends a lone surrogate as
# an escape.
MOST_BYTES = 6

Kind = Literal["s", "j"]


class Items:
    """The items of one run."""

    def __init__(self, quoted_run: str, paced: bool, channel: Channel, limits: Limits) -> None:
        self._quoted_run = quoted_run
        self._paced = paced
        self._channel = channel
        self._limits = limits
        # Guards every field that several threads change. Never held while writing to the pipe or
        # in user code.
        self.lock = Lock()
        # Yielded and not yet in a frame. The producer only appends, and sealing only removes from
        # the front, so an item needs no lock.
        self.pending: list[str] = []
        # The kind of every item in `pending`.
        self.kind: Kind = "s"
        # Characters: only a longer item can be over the limit.
        self.longest = limits.item // MOST_BYTES
        # Items and bytes in frames so far.
        self.number = 0
        self.bytes = 0
        self.overflow = False
        # The producer stops at this number of items. A cancel or an overflow sets the number to
        # -1, so that one comparison is enough.
        self.allowed = FIRST_WINDOW if paced else sys.maxsize
        self._window = FIRST_WINDOW
        self._taken = 0
        self._taken_bytes = 0
        # (number of the last item, total bytes up to its end) of each frame without credit.
        self._sent: deque[tuple[int, int]] = deque()
        self._wake: Callable[[], object] | None = None

    def check(self, item: str) -> None:
        """Raises TooLarge for an item over the limit.

        Called only for more than `longest` characters."""
        encoded = json_bytes(item) if self.kind == "j" else string_bytes(item)
        if len(encoded) > self._limits.item:
            raise TooLarge(f"an item is over {self._limits.item} bytes")

    def send_bytes(self, item: bytes, printed: Printed | None) -> None:
        """Moves the printed lines, then one item of bytes, into frames on the channel's queue."""
        if len(item) > self._limits.item:
            raise TooLarge(f"an item is over {self._limits.item} bytes")
        with self.lock:
            self._seal(printed)
            self._emit("b", 1, item)

    def check_overflow(self) -> None:
        """Raises TooLarge if the output is over its limit."""
        if self.overflow:
            raise TooLarge(f"the run's output is over {self._limits.output} bytes")

    # -- frames -----------------------------------------------------------------------------------

    def seal(self, printed: Printed | None) -> None:
        """Moves the printed lines, then the pending items, into frames on the channel's queue."""
        with self.lock:
            self._seal(printed)

    def seal_if_free(self, printed: Printed | None) -> None:
        """Seals, unless another thread does so."""
        if self.lock.acquire(False):
            try:
                self._seal(printed)
            finally:
                self.lock.release()

    def change_kind(self, kind: Kind, printed: Printed | None) -> None:
        """Seals the items of the other kind. Further items have this kind."""
        with self.lock:
            self._seal(printed)
            self.kind = kind

    def _seal(self, printed: Printed | None) -> None:
        if printed is not None:
            printed.seal()
        pending = self.pending
        waiting = len(pending)
        while waiting > 0:
            count = min(waiting, FRAME_ITEMS)
            self._seal_frame(pending, count)
            waiting -= count

    def _seal_frame(self, pending: list[str], count: int) -> None:
        items = pending[:count]
        del pending[:count]
        text = "\n".join(items)
        if self.kind == "j":
            self._emit("j", count, json_bytes(text))
        elif text.count("\n") == count - 1 and "\r" not in text:
            self._emit("s", count, string_bytes(text))
        else:
            self._seal_lines(items)

    def _seal_lines(self, items: list[str]) -> None:
        plain: list[str] = []
        for item in items:
            if "\n" not in item and "\r" not in item:
                plain.append(item)
                continue
            if plain:
                self._emit("s", len(plain), string_bytes("\n".join(plain)))
                plain = []
            self._emit("m", 1, string_bytes(item))
        if plain:
            self._emit("s", len(plain), string_bytes("\n".join(plain)))

    def _emit(self, kind: str, count: int, blob: bytes) -> None:
        if self.overflow:
            return
        if not self._paced and self.bytes + len(blob) > self._limits.output:
            self.overflow = True
            self.allowed = -1
            count, blob = _fitting(kind, blob, self._limits.output - self.bytes)
            if count == 0:
                return
        self.number += count
        self.bytes += len(blob)
        self._sent.append((self.number, self.bytes))
        self._channel.put(items_frame(self._quoted_run, kind, count, blob))

    # -- pace -------------------------------------------------------------------------------------

    def credit(self, number: int) -> None:
        """Records that a reader, or the store of a run without pacing, has `number` items."""
        with self.lock:
            if number <= self._taken:
                return
            self._taken = number
            while self._sent and self._sent[0][0] <= number:
                self._taken_bytes = self._sent.popleft()[1]
            if self._paced:
                self._window = min(self._window * 2, LARGEST_WINDOW)
                if self.allowed >= 0:
                    self.allowed = number + self._window
            if not self._must_wait():
                self._wake_producer()

    def wait_with(self, wake: Callable[[], object]) -> bool:
        """Returns whether the producer has to wait.

        If so, another thread calls `wake` once, when the producer may continue or must stop."""
        with self.lock:
            if not self._must_wait():
                return False
            self._wake = wake
            return True

    def stop(self) -> None:
        """Makes the producer stop at its next item: the run is cancelled."""
        with self.lock:
            self.allowed = -1
            self._wake_producer()

    def _must_wait(self) -> bool:
        if self.allowed < 0:
            return False
        return self.number >= self.allowed or self.bytes - self._taken_bytes >= WINDOW_BYTES

    def _wake_producer(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()


def _fitting(kind: str, blob: bytes, room: int) -> tuple[int, bytes]:
    """Returns the items at the start of `blob` that fit in `room` bytes, as (count, blob)."""
    if kind in ("m", "b") or room <= 0:
        return 0, b""
    end = blob.rfind(b"\n", 0, room + 1)
    if end == -1:
        return 0, b""
    return blob.count(b"\n", 0, end) + 1, blob[:end]
