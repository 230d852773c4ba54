# Contract 5, "Logs: `GET /runs/{run_id}/logs`": assigns each line that a function prints to its run, whichever thread or task prints it.
# The raw descriptors 1 and 2 stay the worker's pipes, for C code and child processes.
import codecs
import contextvars
import io
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from .printed import Printed

current_run = contextvars.ContextVar("current_run", default=None)


class LineWriter(io.TextIOBase):
    """Replaces sys.stdout or sys.stderr. Only queues lines.

    A cancel may interrupt this thread anywhere, and must not leave half a frame in the pipe.
    A thread that prints in a loop neither waits nor delays other threads."""

    mode = "w"
    newlines = None
    # On the class, because `io.TextIOBase` has read-only properties of these names.
    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name, original, outside, ticker):
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

    def reconfigure(self, *, encoding=None, errors=None, newline=None, line_buffering=None, write_through=None):
        """Stores the settings, so that the app can read them back. Lines are always sent as UTF-8."""
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

    def detach(self):
        """Returns the buffer. The stream stays usable, because log handlers of the app may hold the stream."""
        return self.buffer

    def writable(self):
        return True

    def fileno(self):
        return self._original.fileno()

    def flush(self):
        """Does nothing: whole lines are queued already. A partial line waits for its newline or for the end of the run."""

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        run = current_run.get()
        printed = self._outside if run is None else run.printed or run.begin_printing()
        if printed.write(self._stream, text):
            if printed.over:
                self._ticker.late.add(printed)
            if not self._ticker.awake:
                self._ticker.wake()
        return len(text)


def replace(channel, ticker, limit):
    ticker.outside = Printed(None, channel, limit)
    sys.stdout = LineWriter("stdout", sys.stdout, ticker.outside, ticker)
    sys.stderr = LineWriter("stderr", sys.stderr, ticker.outside, ticker)
    _writers.extend((sys.stdout, sys.stderr))
    threading.Thread.start = _start
    ThreadPoolExecutor.submit = _submit


def restore():
    """Restores the plain interpreter in a forked child."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    for writer, original in zip(_writers, (sys.__stdout__, sys.__stderr__)):
        writer.write = original.write  # for code that holds the stream, such as logging's handlers
    threading.Thread.start = _plain_start
    ThreadPoolExecutor.submit = _plain_submit


_writers = []
_plain_start = threading.Thread.start
_plain_submit = ThreadPoolExecutor.submit


def _start(thread):
    """Assigns the thread's output to the run that starts the thread. Passes on nothing else of the run's context."""
    run = current_run.get()
    if run is not None:
        own = thread.run

        def within():
            del thread.run  # avoids a reference cycle
            current_run.set(run)
            own()

        thread.run = within
    return _plain_start(thread)


def _submit(self, function, /, *args, **kwargs):
    """Assigns the work's output to the run that submits it, because a pool's threads serve many runs."""
    run = current_run.get()

    def within():
        before = current_run.set(run)
        try:
            return function(*args, **kwargs)
        finally:
            current_run.reset(before)

    return _plain_submit(self, within)
