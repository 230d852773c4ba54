# PROTOCOL.md, "A run": the state of one run, from `run` to its terminal message. Shared by the thread that drives the run, the thread that
# reads commands, and the ticker.
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
# The most items in one frame. The worker limits a frame's bytes, and empty items have none.
FRAME_ITEMS = 32 * 1024


class Cancelled(BaseException):
    """Raised in the function when its run is cancelled. A BaseException is not caught by `except Exception`."""


class Limits:
    """Limits from `init`, in bytes: one item, the output of a run without pacing, and printed lines that are not sent yet."""

    def __init__(self, item, output, log):
        self.item = item
        self.output = output
        self.log = log


class Run:
    # Defaults stay on the class, because most runs never change them. Setting all of them for each run took 4 of a call's 25 us.

    # Created when the run prints for the first time.
    printed = None
    # The run has sent its last line. Threads that it started may still print.
    over = False

    # The kind of every item in `pending`.
    kind = "s"
    streamed = False
    items = 0
    bytes = 0
    overflow = False

    # The producer stops at this number of items. A cancel or an overflow sets the number to -1, so that one comparison is enough.
    allowed = sys.maxsize
    _window = FIRST_WINDOW
    _taken = 0
    _taken_bytes = 0
    # (number of the last item, total bytes up to its end) of each frame without credit. Created with the first frame.
    _sent = None
    _wake = None

    cancelled = False
    # True while user code runs in its own thread. A cancel may raise in that thread only then.
    armed = False
    # A cancel has been raised or is about to be raised. It is raised only once, so `finally` blocks run undisturbed.
    delivered = False
    sleeper = None
    thread = None
    context = None
    iterator = None
    # The awaitable that the function returned, and its task in the event loop.
    awaitable = None
    task = None

    def __init__(self, header, params, channel, limits):
        self.id = header["r"]
        self.function = header["f"]
        self.paced = header["paced"]
        self.traceparent = header.get("tp")
        self.params = params
        self.quoted = f'"{self.id}"'  # a UUID needs no escapes
        self.channel = channel
        self.limits = limits
        # Guards every field that several threads change. Never held while writing to the pipe or in user code.
        self.lock = Lock()
        self.started_at = perf_counter()
        # Items that are yielded and not yet sealed into a frame. The producer only appends, and sealing only removes from the front,
        # so an item needs no lock.
        self.pending = []
        if self.paced:
            self.allowed = FIRST_WINDOW

    # -- lines ------------------------------------------------------------------------------------------------------------------

    def begin_printing(self):
        """Returns the object that takes this run's lines. Any of the run's threads may call it."""
        printed = self.__dict__.setdefault("printed", Printed(self.quoted, self.channel, self.limits.log))
        if self.over:
            printed.over = True
        return printed

    def finish_lines(self):
        """Sends every printed line, including a last line without a newline."""
        self.over = True
        if self.printed is not None:
            self.printed.finish()

    # -- items ------------------------------------------------------------------------------------------------------------------

    def seal(self):
        """Moves the pending lines, then the pending items, into frames on the channel's queue. The caller holds the lock."""
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
        """Records that a reader of a paced run, or the store of any other run, has the items up to `number`."""
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
        """Whether the producer has to wait. If so, another thread calls `wake` once, when the producer may continue or must stop."""
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
        """Requests that the run ends. `interrupt(run)` raises Cancelled in the thread that drives the run."""
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
        """Ends the run with an error: `code`, `message` and further fields of `error` in PROTOCOL.md."""
        self.channel.put(frame({**self._terminal("error"), **error}))

    def finish_cancelled(self):
        self.channel.put(frame(self._terminal("cancelled")))


def _fitting(kind, blob, room):
    """Returns the items at the start of `blob` that fit in `room` bytes, as (count, blob)."""
    if kind == "m" or room <= 0:
        return 0, b""
    end = blob.rfind(b"\n", 0, room + 1)
    if end == -1:
        return 0, b""
    return blob.count(b"\n", 0, end) + 1, blob[:end]
