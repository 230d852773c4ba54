# PROTOCOL.md, `run` to its one terminal message: the state of one run, shared by the thread that drives it, the one that reads commands,
# and the ticker.
import sys
from collections import deque
from threading import Lock
from time import perf_counter

from .frames import done_frame, frame, items_frame
from .output import TooLarge, json_bytes, string_bytes
from .printed import Printed

FIRST_WINDOW = 256
LARGEST_WINDOW = 4096
WINDOW_BYTES = 1024 * 1024
# Items in one frame: the worker bounds a frame's bytes, and empty items count for nothing else.
FRAME_ITEMS = 32 * 1024


class Cancelled(BaseException):
    """Raised in the function when its run is cancelled; no `except Exception` stops it."""


class Limits:
    """From `init`: bytes of one item, of all that a run gives which is not paced by a reader, and of what it may have printed and not sent."""

    def __init__(self, item, output, log):
        self.item = item
        self.output = output
        self.log = log


class Run:
    # What most runs never change stays here, on the class: setting all of it for each run took 4 of a call's 25 us.

    # Made when it prints first.
    printed = None
    # It has printed its last line; threads that it started may go on.
    over = False

    # All items that wait in `pending` are of one kind.
    kind = "s"
    streamed = False
    items = 0
    bytes = 0
    overflow = False

    # The producer stops when it has made this many; a cancel and an overflow set it to -1, so one comparison serves for all.
    allowed = sys.maxsize
    _window = FIRST_WINDOW
    _taken = 0
    _taken_bytes = 0
    # (number of a frame's last item, bytes up to its end), while no credit has come for the frame. Made with the first frame.
    _sent = None
    _wake = None

    cancelled = False
    # True while user code runs in a thread of its own: only then may a cancel raise in that thread.
    armed = False
    # A cancel has been raised or is about to be; it is never raised twice, so `finally` blocks run undisturbed.
    delivered = False
    sleeper = None
    thread = None
    context = None
    iterator = None
    # What the function gave back to be awaited, and the event loop's task for it.
    awaitable = None
    task = None

    def __init__(self, header, params, channel, limits):
        self.id = header["r"]
        self.function = header["f"]
        self.paced = header["paced"]
        self.traceparent = header.get("tp")
        self.params = params
        self.quoted = f'"{self.id}"'  # a UUID: nothing to escape
        self.channel = channel
        self.limits = limits
        # Guards everything above and below that more than one thread changes; never held while writing to the pipe or in user code.
        self.lock = Lock()
        self.started_at = perf_counter()
        # Items yielded and not yet sealed into a frame. The producer only appends, whoever seals only takes from the front, so an item
        # costs no lock.
        self.pending = []
        if self.paced:
            self.allowed = FIRST_WINDOW

    # -- lines ------------------------------------------------------------------------------------------------------------------

    def begin_printing(self):
        """Where to print; from any of the run's threads."""
        printed = self.__dict__.setdefault("printed", Printed(self.quoted, self.channel, self.limits.log))
        if self.over:
            printed.over = True
        return printed

    def finish_lines(self):
        """Sends what was printed, to the last line without a newline."""
        self.over = True
        if self.printed is not None:
            self.printed.finish()

    # -- items ------------------------------------------------------------------------------------------------------------------

    def seal(self):
        """Moves the pending items into frames on the channel's queue, after what was printed before them. With the lock held."""
        if self.printed is not None:
            self.printed.seal()
        pending = self.pending
        waiting = len(pending)
        while waiting > 0:
            count = min(waiting, FRAME_ITEMS)
            self._seal_frame(pending, count)
            waiting -= count

    def _seal_frame(self, pending, count):
        items = pending[:count]
        del pending[:count]
        text = "\n".join(items)
        if self.kind == "j":
            self._emit("j", count, json_bytes(text))
        elif text.count("\n") == count - 1 and "\r" not in text:
            self._emit("s", count, string_bytes(text))
        else:
            self._seal_lines(items)

    def _seal_lines(self, items):
        plain = []
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

    def _emit(self, kind, count, blob):
        if self.overflow:
            return
        if not self.paced and self.bytes + len(blob) > self.limits.output:
            self.overflow = True
            self.allowed = -1
            count, blob = _fitting(kind, blob, self.limits.output - self.bytes)
            if count == 0:
                return
        self.items += count
        self.bytes += len(blob)
        if self._sent is None:
            self._sent = deque()
        self._sent.append((self.items, self.bytes))
        self.channel.put(items_frame(self.quoted, kind, count, blob))

    def change_kind(self, kind):
        with self.lock:
            self.seal()
            self.kind = kind

    def check_overflow(self):
        if self.overflow:
            raise TooLarge(f"the run's output is over {self.limits.output} bytes")

    # -- pace -------------------------------------------------------------------------------------------------------------------

    def credit(self, number):
        """A reader of a paced run, or the store of any other run, has the items up to `number`."""
        with self.lock:
            if number <= self._taken:
                return
            self._taken = number
            while self._sent and self._sent[0][0] <= number:
                self._taken_bytes = self._sent.popleft()[1]
            if self.paced:
                self._window = min(self._window * 2, LARGEST_WINDOW)
                if self.allowed >= 0:
                    self.allowed = number + self._window
            if self._wake is not None and not self._must_wait():
                self._wake()
                self._wake = None

    def wait_with(self, wake):
        """Whether the producer has to wait; then `wake` is called once, by another thread, when it may go on or has to stop."""
        with self.lock:
            if not self._must_wait():
                return False
            self._wake = wake
            return True

    def _must_wait(self):
        if self.allowed < 0:
            return False
        return self.items >= self.allowed or self.bytes - self._taken_bytes >= WINDOW_BYTES

    # -- cancel -----------------------------------------------------------------------------------------------------------------

    def cancel(self, interrupt):
        """Asks the run to stop, wherever it is. `interrupt(run)` raises Cancelled in the thread that drives it."""
        with self.lock:
            if self.cancelled:
                return
            self.cancelled = True
            self.allowed = -1
            if self._wake is not None:
                self._wake()
                self._wake = None
            if self.armed and not self.delivered:
                self.delivered = True
                if self.sleeper is not None:
                    self.sleeper.release()
                else:
                    interrupt(self)

    # -- terminal messages ------------------------------------------------------------------------------------------------------

    def announce_stream(self):
        self.streamed = True
        self.channel.put(frame({"t": "started", "r": self.id}))

    def _terminal(self, kind):
        with self.lock:
            self.seal()
        return {"t": kind, "r": self.id, "items": self.items, "streamed": self.streamed, "ms": self._elapsed()}

    def _elapsed(self):
        return round((perf_counter() - self.started_at) * 1000, 3)

    def finish(self, result, status):
        """Ends the run with its result as JSON bytes, or with None after its items."""
        if self.streamed:
            with self.lock:
                self.seal()
        if self.overflow:
            return self.fail({"code": TooLarge.code, "message": f"the run's output is over {self.limits.output} bytes"})
        self.channel.put(done_frame(self.quoted, self.items, self.streamed, self._elapsed(), status, result))

    def fail(self, error):
        """Ends the run with an error: `code`, `message` and what else PROTOCOL.md gives `error`."""
        self.channel.put(frame({**self._terminal("error"), **error}))

    def finish_cancelled(self):
        self.channel.put(frame(self._terminal("cancelled")))


def _fitting(kind, blob, room):
    """The items at the start of `blob` that fit in `room` bytes, as (count, blob)."""
    if kind == "m" or room <= 0:
        return 0, b""
    end = blob.rfind(b"\n", 0, room + 1)
    if end == -1:
        return 0, b""
    return blob.count(b"\n", 0, end) + 1, blob[:end]
