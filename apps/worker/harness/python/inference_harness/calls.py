# PROTOCOL.md, "A run": calls the function in this thread, and sends its items.
from __future__ import annotations

import sys
from collections.abc import Iterable
from time import perf_counter
from typing import Any, Callable, cast

from .app import App
from .cancel import Cancelled
from .channel import Channel
from .ending import Endings
from .here import here
from .items import Items
from .logs import current_run
from .media import produce_bytes
from .produce import produce
from .run import Run
from .tasks import Tasks
from .ticker import Ticker
from .trace import enter
from .values import close, is_async, is_stream


class Calls:
    """Runs functions in the calling thread. `tasks` runs the awaitables that functions return."""

    def __init__(
        self, app: App, channel: Channel, ticker: Ticker, endings: Endings, tasks: Tasks
    ) -> None:
        self._app = app
        self._channel = channel
        self._ticker = ticker
        self._endings = endings
        self._tasks = tasks

    def call(self, run: Run) -> None:
        """Runs a call until its terminal message, or until the event loop takes it over.

        Raises nothing."""
        if run.traceparent is not None:
            run.context.run(enter, run.traceparent)
        run.context.run(self._call, run)

    def stream(self, run: Run, value: object) -> None:
        """Drives an iterator that an awaited function returned. Must run in the run's context."""
        self._guarded(run, self._stream_value, value)

    def _call(self, run: Run) -> None:
        current_run.set(run)
        run.started_at = perf_counter()
        try:
            function, arguments = self._app.bound(run)
        except BaseException as error:  # wrong arguments, or sys.exit in a class of the app
            return self._endings.end(run, error)
        self._guarded(run, self._call_function, function, arguments)

    def _call_function(
        self, run: Run, function: Callable[..., object], arguments: dict[str, Any]
    ) -> object:
        value = function(**arguments)
        if is_async(value):
            run.awaitable = value
            return None
        if is_stream(value):
            return self._stream_value(run, value)
        return value

    def _stream_value(self, run: Run, value: object) -> None:
        iterator = run.iterator = iter(cast("Iterable[object]", value))
        items = run.begin_stream()
        steps = (
            produce(run, items, iterator, self._channel, self._ticker)
            if run.media is None
            else produce_bytes(run, items, iterator, self._channel)
        )
        for _ in steps:
            _wait(items)

    def _guarded(self, run: Run, work: Callable[..., object], *arguments: Any) -> None:
        """Calls `work` while cancels may interrupt it.

        Then, without cancels, closes the iterator and sends the terminal message."""
        interrupt = here.interrupt
        assert interrupt is not None, "functions run only in threads that are started for them"
        here.run = run
        interrupt.prepare()
        run.cancellation.interrupt = interrupt
        failure = result = None
        tracing, profiling = sys.gettrace(), sys.getprofile()
        try:
            try:
                run.cancellation.enter()
                result = work(run, *arguments)
            except BaseException as error:
                failure = error
            # The function's trace or profile function would observe, and could break, the rest of
            # this thread's work, including the next run.
            if sys.gettrace() is not tracing:
                sys.settrace(tracing)
            if sys.getprofile() is not profiling:
                sys.setprofile(profiling)
            run.cancellation.leave()
        except Cancelled as error:  # raised after the inner `try`, before `leave` took effect
            failure = failure or error
            sys.settrace(tracing)
            sys.setprofile(profiling)
            run.cancellation.leave()
        if failure is not None:
            close(run.awaitable)
            close(run.iterator)
        here.run = None
        interrupt.prepare()
        if run.awaitable is not None and failure is None:
            self._tasks.adopt(run)
        else:
            self._endings.end(run, failure, result)


def _wait(items: Items) -> None:
    """Waits until the reader or the store has taken enough items."""
    gate = here.gate
    if items.wait_with(gate.release):
        gate.acquire()
