# PROTOCOL.md, "Threads": runs async functions and generators as tasks of one event loop in a
# separate thread. Also with `concurrency` 1: the loop cancels a task, and the main thread stays
# free for signals.
from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Callable, cast

from .cancel import Cancelled
from .channel import Channel
from .ending import Endings
from .interrupt import TaskInterrupt
from .items import Items
from .media import produce_bytes
from .produce import produce
from .run import Run
from .ticker import Ticker
from .values import close, is_async, is_async_stream, is_stream


class Tasks:
    """Runs the awaitables of all runs."""

    def __init__(
        self,
        channel: Channel,
        ticker: Ticker,
        endings: Endings,
        drive: Callable[[Run, object], None],
    ) -> None:
        self._channel = channel
        self._ticker = ticker
        self._endings = endings
        # `drive(run, iterator)` drives, in a function's thread, an iterator that an awaited
        # function returned.
        self._drive_in_thread = drive
        # Created with the first awaitable, because many apps have none.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        # What the loop's thread had before the first function ran there.
        self._tracing: Any = None
        self._profiling: Any = None
        self._flush_due = False

    def result(self, awaitable: Awaitable[object]) -> object:
        """Awaits the result of a hook, from another thread."""
        return asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._started()).result()

    def adopt(self, run: Run) -> None:
        """Takes over a run whose function returned `run.awaitable`. Any thread may call it."""
        self._started().call_soon_threadsafe(run.in_context, self._begin, run)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            loop = self._loop
            if loop is None:
                loop = self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._serve, args=(loop,), daemon=True).start()
        return loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        self._tracing, self._profiling = sys.gettrace(), sys.getprofile()
        while True:
            try:
                loop.run_forever()
            except BaseException:
                # Raised in the loop's own code by a task's trace function or signal. The other
                # tasks continue.
                traceback.print_exc()

    def _begin(self, run: Run) -> None:
        loop = asyncio.get_running_loop()
        interrupt = run.cancellation.interrupt = TaskInterrupt(loop, run.cancellation)
        try:
            run.cancellation.enter()
        except Cancelled as error:
            close(run.awaitable)
            self._end(run, error)
            return
        task = interrupt.task = loop.create_task(self._drive(run))
        task.add_done_callback(lambda task: self._ended(run, task))

    async def _drive(self, run: Run) -> object:
        """Returns the result.

        If the result is an iterator that a thread has to drive, sets `run.iterator` and returns
        None."""
        value = run.awaitable
        while is_async(value):
            if is_async_stream(value):
                return await self._stream(run, cast("AsyncIterator[object]", value))
            value = await cast("Awaitable[object]", value)
        if is_stream(value):
            run.iterator = value
            return None
        return value

    def _ended(self, run: Run, task: asyncio.Task[object]) -> None:
        # The function's trace or profile function would observe, and slow down, every other task
        # of the loop.
        if sys.gettrace() is not self._tracing:
            sys.settrace(self._tracing)
        if sys.getprofile() is not self._profiling:
            sys.setprofile(self._profiling)
        run.cancellation.leave()
        failure: BaseException | None = None
        result = None
        if task.cancelled():
            failure = asyncio.CancelledError("the function cancelled itself")
            # The cancel came before the task's first step, so nothing awaited it.
            close(run.awaitable)
        else:
            failure = task.exception()
            if failure is None:
                result = task.result()
        run.awaitable = None
        if failure is None and run.iterator is not None and run.items is None:
            value, run.iterator = run.iterator, None
            self._drive_in_thread(run, value)
            return
        self._end(run, failure, result)

    def _end(self, run: Run, failure: BaseException | None, result: object = None) -> None:
        self._endings.end(run, failure, result)
        self._flush_soon()

    async def _stream(self, run: Run, value: AsyncIterator[object]) -> None:
        items = run.begin_stream()
        iterator = value.__aiter__() if hasattr(value, "__aiter__") else _Steps(value)
        taken: list[object] = []
        append = taken.append
        steps = (
            produce(run, items, taken, self._channel, self._ticker, refilled=True)
            if run.media is None
            else produce_bytes(run, items, taken, self._channel, refilled=True)
        )
        step = steps.send
        try:
            async for item in iterator:
                append(item)
                if step(None):
                    taken.clear()
                    await self._wait(items)
                    step(None)
        finally:
            run.cancellation.leave()  # a later cancel must not interrupt `finally` blocks
            aclose = getattr(iterator, "aclose", None)
            if aclose is not None:
                await aclose()

    async def _wait(self, items: Items) -> None:
        """Waits until the reader or the store has taken enough items.

        Gives the other tasks a turn."""
        loop = asyncio.get_running_loop()
        gate: asyncio.Future[None] = loop.create_future()
        if items.wait_with(lambda: loop.call_soon_threadsafe(_open, gate)):
            await gate
        else:
            await asyncio.sleep(0)

    def _flush_soon(self) -> None:
        """Writes the frames of all runs that end in one turn of the loop together."""
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flush_due = False
        self._channel.flush()


class _Steps:
    """Supports `async for` over an object that has only `__anext__`."""

    def __init__(self, value: AsyncIterator[object]) -> None:
        self._value = value

    def __aiter__(self) -> _Steps:
        return self

    def __anext__(self) -> Awaitable[object]:
        return self._value.__anext__()


async def _awaited(awaitable: Awaitable[object]) -> object:
    return await awaitable


def _open(gate: asyncio.Future[None]) -> None:
    if not gate.done():
        gate.set_result(None)
