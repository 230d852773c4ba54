# PROTOCOL.md, "Threads": runs async functions and generators as tasks of one event loop in a separate thread. Also with `concurrency` 1:
# the loop cancels a task, and the main thread stays free for signals.
import asyncio
import sys
import threading
import traceback
from time import monotonic

from . import output
from .calls import FRAME_AGE, FRAME_SIZE, MOST_BYTES, check_item, close, is_async, is_stream
from .run import Cancelled


class Tasks:
    def __init__(self, channel, ticker, calls, submit):
        self._channel = channel
        self._ticker = ticker
        self._calls = calls
        # Runs a callable in a function's thread, to drive an iterator that an awaited function returned.
        self._submit = submit
        self._loop = None
        self._tracing = self._profiling = None
        self._starting = threading.Lock()
        self._flush_due = False

    def _started(self):
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._serve, daemon=True).start()
        return self._loop

    def _serve(self):
        asyncio.set_event_loop(self._loop)
        self._tracing, self._profiling = sys.gettrace(), sys.getprofile()
        while True:
            try:
                self._loop.run_forever()
            except BaseException:  # raised in the loop's own code by a task's trace function or signal; the other tasks continue
                traceback.print_exc()

    def result(self, awaitable):
        """Awaits the result of a hook, from another thread."""
        return asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._started()).result()

    def adopt(self, run):
        """Takes over a run whose function returned `run.awaitable`. Any thread may call it."""
        self._started().call_soon_threadsafe(self._begin, run)

    def cancel(self, run):
        """Cancels the task of a run that is marked as cancelled. Any thread may call it."""
        self._started().call_soon_threadsafe(self._cancel, run)

    def _begin(self, run):
        if run.cancelled:
            close(run.awaitable)
            self._calls.in_context(run, self._calls.end, run, Cancelled(), None)
            self._flush_soon()
            return
        run.task = self._calls.in_context(run, self._loop.create_task, self._drive(run))
        run.task.add_done_callback(lambda task: self._ended(run, task))

    def _cancel(self, run):
        if run.task is not None and not run.delivered:
            run.delivered = True
            run.task.cancel()

    async def _drive(self, run):
        """Returns the result. If the result is an iterator that a thread has to drive, sets `run.iterator` and returns None."""
        value = run.awaitable
        while is_async(value):
            if hasattr(value, "__aiter__") or hasattr(value, "__anext__"):
                return await self._stream(run, value)
            value = await value
        if is_stream(value):
            run.iterator = value
            return None
        return value

    def _ended(self, run, task):
        # The function's trace or profile function would observe, and slow down, every other task of the loop.
        if sys.gettrace() is not self._tracing:
            sys.settrace(self._tracing)
        if sys.getprofile() is not self._profiling:
            sys.setprofile(self._profiling)
        failure = result = None
        if task.cancelled():
            failure = asyncio.CancelledError("the function cancelled itself")
            close(run.awaitable)  # the cancel came before the task's first step, so nothing awaited it
        else:
            failure = task.exception()
            if failure is None:
                result = task.result()
        run.task = run.awaitable = None
        if failure is None and run.iterator is not None and not run.streamed:
            value, run.iterator = run.iterator, None
            self._submit(lambda: self._calls.in_context(run, self._calls.stream, run, value))
            return
        self._calls.in_context(run, self._calls.end, run, failure, result)
        self._flush_soon()

    async def _stream(self, run, value):
        run.announce_stream()
        iterator = value.__aiter__() if hasattr(value, "__aiter__") else _Steps(value)
        try:
            await self._produce(run, iterator)
        finally:
            run.delivered = True  # a later cancel must not interrupt `finally` blocks
            aclose = getattr(iterator, "aclose", None)
            if aclose is not None:
                await aclose()

    async def _produce(self, run, iterator):
        """Sends the items of `iterator`, as in `Calls._produce`. A full frame also gives the loop's other tasks a turn."""
        channel, ticker, encode = self._channel, self._ticker, output.encode
        append, largest = run.pending.append, run.limits.item // MOST_BYTES
        count = size = 0
        async for item in iterator:
            if isinstance(item, str):
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
                await self._flush(run)
            elif not ticker.awake:
                ticker.wake()

    async def _flush(self, run):
        with run.lock:
            run.seal()
        self._channel.flush()
        self._channel.hold_back()
        gate = self._loop.create_future()
        if run.wait_with(lambda: self._loop.call_soon_threadsafe(_open, gate)):
            await gate
        else:
            await asyncio.sleep(0)
        if run.cancelled:
            raise Cancelled()  # the function caught the task's cancel and continued
        run.check_overflow()

    def _flush_soon(self):
        """Writes the frames of all runs that end in one turn of the loop together."""
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush_now)

    def _flush_now(self):
        self._flush_due = False
        self._channel.flush()


class _Steps:
    """Supports `async for` over an object that has only `__anext__`."""

    def __init__(self, value):
        self._value = value

    def __aiter__(self):
        return self

    def __anext__(self):
        return self._value.__anext__()


async def _awaited(awaitable):
    return await awaitable


def _open(gate):
    if not gate.done():
        gate.set_result(None)
