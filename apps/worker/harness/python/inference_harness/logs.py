# Contract 5, "Logs: `GET /runs/{run_id}/logs`": assigns each line that a function prints to its
# run, whichever thread or task prints it. The raw descriptors 1 and 2 stay the worker's pipes, for
# C code and child processes.
from __future__ import annotations

import codecs
import io
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Callable, TextIO

from .channel import Channel
from .printed import Printed
from .run import Run
from .ticker import Ticker

current_run: ContextVar[Run | None] = ContextVar("current_run", default=None)


class LineWriter(io.TextIOBase):
    """Replaces sys.stdout or sys.stderr. Only queues lines.

    A cancel may interrupt this thread anywhere, and must not leave half a frame in the pipe.
    A thread that prints in a loop neither waits nor delays other threads."""

    mode = "w"
    newlines = None
    # On the class, because `io.TextIOBase` has read-only properties of these names.
    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name: str, original: TextIO, outside: Printed, ticker: Ticker) -> None:
        super().__init__()
        self.name = f"<{name}>"
        self.buffer = original.buffer
        self.line_buffering = True
        self.write_through = False
        self._stream = "o" if name == "stdout" else "e"
        self._original = original
        # Takes the lines that are printed outside of every run.
        self._outside = outside
        self._ticker = ticker

    def reconfigure(
        self,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        line_buffering: bool | None = None,
        write_through: bool | None = None,
    ) -> None:
        """Stores the settings, so that the app can read them back.

        Lines are always sent as UTF-8."""
        if newline not in (None, "", "\n", "\r", "\r\n"):
            raise ValueError(f"illegal newline value: {newline!r}")
        if encoding is not None:
            codecs.lookup(encoding)
            self.encoding = encoding
            self.errors = "strict"
        if errors is not None:
            codecs.lookup_error(errors)
            self.errors = errors
        if line_buffering is not None:
            self.line_buffering = bool(line_buffering)
        if write_through is not None:
            self.write_through = bool(write_through)

    def detach(self) -> Any:
        """Returns the buffer.

        The stream stays usable, because log handlers of the app may hold the stream."""
        return self.buffer

    def writable(self) -> bool:
        """Returns True."""
        return True

    def fileno(self) -> int:
        """Returns the descriptor of the worker's raw pipe."""
        return self._original.fileno()

    def flush(self) -> None:
        """Does nothing: whole lines are queued already.

        A partial line waits for its newline or for the end of the run."""

    def write(self, text: str) -> int:
        """Adds text to the lines of the current run."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        run = current_run.get()
        printed = self._outside if run is None else run.printed or run.begin_printing()
        if printed.write(self._stream, text):
            if printed.over:
                self._ticker.late.add(printed)
            if not self._ticker.awake:
                self._ticker.wake()
        return len(text)


def replace(channel: Channel, ticker: Ticker, limit: int) -> None:
    """Replaces the standard streams, and the starts of threads and of a pool's work."""
    outside = ticker.outside = Printed(None, channel, limit)
    for name in _STREAMS:
        writer = LineWriter(name, getattr(sys, name), outside, ticker)
        _writers.append(writer)
        setattr(sys, name, writer)
    _thread_class.start = _start
    _pool_class.submit = _submit


def restore() -> None:
    """Restores the plain interpreter in a forked child."""
    for name, writer in zip(_STREAMS, _writers):
        original: Any = getattr(sys, f"__{name}__")
        setattr(sys, name, original)
        # For code that holds the stream, such as the handlers of logging.
        writer.write = original.write
    _thread_class.start = _plain_start
    _pool_class.submit = _plain_submit


_STREAMS = ("stdout", "stderr")
_writers: list[LineWriter] = []
# Typed as Any, because no type allows to replace a method.
_thread_class: Any = threading.Thread
_pool_class: Any = ThreadPoolExecutor
_plain_start: Callable[[threading.Thread], None] = threading.Thread.start
_plain_submit: Callable[..., Future[Any]] = ThreadPoolExecutor.submit


def _start(thread: threading.Thread) -> None:
    """Assigns the thread's output to the run that starts the thread.

    Passes on nothing else of the run's context."""
    run = current_run.get()
    if run is not None:
        own = thread.run

        def within() -> None:
            del thread.run  # avoids a reference cycle
            current_run.set(run)
            own()

        thread.run = within
    return _plain_start(thread)


def _submit(
    self: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Future[Any]:
    """Assigns the work's output to the submitting run: a pool's threads serve many runs."""
    run = current_run.get()

    def within() -> Any:
        before = current_run.set(run)
        try:
            return function(*args, **kwargs)
        finally:
            current_run.reset(before)

    return _plain_submit(self, within)
