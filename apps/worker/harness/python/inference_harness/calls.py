# PROTOCOL.md, "A run": calls the function in this thread, sends its items, and sends the terminal message.
import inspect
import sys
import traceback
from threading import Lock
from time import monotonic, perf_counter

from . import output, process
from .failures import error_fields
from .frames import frame
from .logs import current_run
from .output import BINARY_KINDS, TooLarge
from .run import Cancelled
from .sleep import here
from .trace import enter

# The thread that yields sends a frame at this size (bytes) or age (s). Measured: a balance of latency and system calls.
FRAME_SIZE = 32 * 1024
FRAME_AGE = 0.001

# The largest number of bytes that one character of an item takes: JSON sends a lone surrogate as an escape.
MOST_BYTES = 6

# Iterable types that count as plain results.
VALUE_KINDS = (str, dict, list, tuple, set, frozenset, *BINARY_KINDS)
PLAIN = frozenset((str, dict, list, tuple, int, float, bool, type(None)))


def is_async(value):
    return type(value) not in PLAIN and (hasattr(value, "__anext__") or hasattr(value, "__aiter__") or inspect.isawaitable(value))


def is_stream(value):
    if type(value) in PLAIN or isinstance(value, VALUE_KINDS):
        return False
    return hasattr(value, "__next__") or hasattr(value, "__iter__")


class Calls:
    """Runs functions in the calling thread. `interrupt` interrupts that kind of thread. `tasks` runs awaitables."""

    def __init__(self, app, channel, ticker, interrupt, on_end):
        self._app = app
        self._channel = channel
        self._ticker = ticker
        self._interrupt = interrupt
        self._on_end = on_end
        self.tasks = None

    def cancel(self, run):
        if run.awaitable is None:
            run.cancel(self._interrupt.interrupt)
        else:
            run.cancel(_nothing)
            self.tasks.cancel(run)

    def call(self, run):
        """Runs a call until its terminal message, or until the event loop takes it over. Raises nothing."""
        run.context = self._app.context.copy()
        if run.traceparent is not None:
            run.context.run(enter, run.traceparent)
        run.context.run(self._call, run)

    def in_context(self, run, work, *arguments):
        """Calls `work` in a copy of the run's context, so that its output belongs to the run. For threads other than the function's."""
        return run.context.copy().run(work, *arguments)

    def stream(self, run, value):
        """Drives an iterator that an awaited function returned. Must run in the run's context."""
        self._guarded(run, self._stream_value, value)

    def _call(self, run):
        current_run.set(run)
        run.started_at = perf_counter()
        if run.cancelled:
            return self.end(run, Cancelled(), None)
        try:
            function, arguments = self._app.prepare(run)
        except Exception as error:  # an unknown function or wrong arguments
            return self.end(run, error, None)
        self._guarded(run, self._call_function, function, arguments)

    def _call_function(self, run, function, arguments):
        value = function(**arguments)
        if is_async(value):
            run.awaitable = value
            return None
        if is_stream(value):
            return self._stream_value(run, value)
        return value

    def _stream_value(self, run, value):
        iterator = run.iterator = iter(value)
        run.announce_stream()
        self._produce(run, iterator)
        return None

    def _guarded(self, run, work, *arguments):
        """Calls `work` while cancels may interrupt it. Then, without cancels, closes the iterator and sends the terminal message."""
        here.run = run
        run.thread = here.ident
        self._interrupt.enter(run)
        failure = result = None
        tracing, profiling = sys.gettrace(), sys.getprofile()
        try:
            try:
                self._arm(run)
                result = work(run, *arguments)
            except BaseException as error:
                failure = error
            # The function's trace or profile function would observe, and could break, the rest of this thread's work, including the next run.
            if sys.gettrace() is not tracing:
                sys.settrace(tracing)
            if sys.getprofile() is not profiling:
                sys.setprofile(profiling)
            self._disarm(run)
        except Cancelled as error:  # raised after the inner `try`, before `_disarm` ended
            failure = failure or error
            self._disarm(run)
        if failure is not None:
            run.delivered = True  # a later cancel must not interrupt `finally` blocks
            close(run.awaitable)
            close(run.iterator)
        here.run = None
        self._interrupt.enter(None)
        if run.awaitable is not None and failure is None:
            self.tasks.adopt(run)
        else:
            self.end(run, failure, result)

    def _arm(self, run):
        with run.lock:
            if run.cancelled:
                raise Cancelled()
            run.armed = True

    def _disarm(self, run):
        while True:
            try:
                with run.lock:
                    run.armed = False
                    if run.delivered:
                        self._interrupt.withdraw(run)
                return
            except Cancelled:
                pass  # raised just before the disarming; no second cancel follows

    def _produce(self, run, iterator):
        """Sends the items of `iterator`: the hot loop. Each item costs a type check, two lengths and one clock reading."""
        channel, ticker, encode = self._channel, self._ticker, output.encode
        append, largest = run.pending.append, run.limits.item // MOST_BYTES
        count = size = 0
        for item in iterator:
            if type(item) is str:
                if run.kind != "s":
                    run.change_kind("s")
            elif isinstance(item, str):
                item = str(item)
                if run.kind != "s":
                    run.change_kind("s")
            else:
                item = encode(item)
                if run.kind != "j":
                    run.change_kind("j")
            length = len(item)
            if length > largest:
                check_item(run, item)
            append(item)
            count += 1
            size += length
            if size >= FRAME_SIZE or count >= run.allowed or monotonic() - channel.written_at >= FRAME_AGE:
                size = 0
                self._flush(run)
            elif not ticker.awake:
                ticker.wake()

    def _flush(self, run):
        """Sends the pending items, then waits while the reader or the pipe is slow. A cancel cannot interrupt the writing."""
        with run.lock:
            if run.cancelled:
                raise Cancelled()
            run.armed = False
            run.seal()
        self._channel.flush()
        self._channel.hold_back()
        gate = self._gate()
        if run.wait_with(gate.release):
            gate.acquire()
        with run.lock:
            if run.cancelled:
                raise Cancelled()
            run.armed = True
        run.check_overflow()

    def _gate(self):
        gate = getattr(here, "gate", None)
        if gate is None:
            gate = here.gate = Lock()
            gate.acquire()
        return gate

    def end(self, run, failure, result):
        """Sends exactly one terminal message, after every line and item of the run."""
        blob = error = None
        if failure is None:
            try:
                blob = None if run.streamed else output.json_bytes(output.encode(result))
                if blob is not None and len(blob) > run.limits.output:
                    raise TooLarge(f"the result is over {run.limits.output} bytes")
            except BaseException as error:
                failure = error
        if failure is not None and not run.cancelled:
            error = error_fields(failure, self._app.debug)
        run.finish_lines()
        if failure is not None and process.has_no_files_left():
            self._channel.put(frame({"t": "worn", "why": "it has no file descriptors left"}))
        if failure is None:
            run.finish(blob, output.status_code(result))
        elif error is None:
            run.finish_cancelled()
        else:
            run.fail(error)
        self._on_end(run)


def check_item(run, item):
    """Raises TooLarge for an item over the limit. Called only if the item's length in characters makes that possible."""
    encoded = output.json_bytes(item) if run.kind == "j" else output.string_bytes(item)
    if len(encoded) > run.limits.item:
        raise TooLarge(f"an item is over {run.limits.item} bytes")


def close(iterator):
    """Closes the generator in its own thread. This runs the `finally` blocks."""
    method = getattr(iterator, "close", None)
    if method is None:
        return
    try:
        method()
    except BaseException:
        traceback.print_exc()


def _nothing(_run):
    pass
