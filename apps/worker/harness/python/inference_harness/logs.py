# Contract 5, `/logs`: what a function prints, line by line, under its run's id. The raw descriptors 1 and 2 stay the worker's pipes, for C
# code and child processes.
import contextvars
import io
import sys
import time

from .frames import frame
from .sleep import real_sleep

LINE_LIMIT = 8 * 1024
# So many frames waiting to be written make whoever prints wait too.
BACKLOG_LIMIT = 2000

current_run = contextvars.ContextVar("current_run", default=None)


class _Outside:
    """Stands for the run where something is printed outside of every run."""

    id = None

    def __init__(self):
        self.partial = {}


class LineWriter(io.TextIOBase):
    """Takes the place of sys.stdout or sys.stderr. Lines are only queued here: a cancel may interrupt this thread anywhere, and must not
    leave half a frame in the pipe."""

    encoding = "utf-8"
    errors = "replace"

    def __init__(self, name, original, channel, ticker):
        super().__init__()
        self.name = f"<{name}>"
        self.buffer = original.buffer
        self._stream = name
        self._original = original
        self._channel = channel
        self._ticker = ticker
        self._outside = _Outside()

    def writable(self):
        return True

    def fileno(self):
        return self._original.fileno()

    def flush(self):
        """Whole lines are on their way already; a part of a line waits for its end, or the run's."""

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        channel = self._channel
        if channel.fd is None:
            return self._original.write(text)  # a forked child
        run = current_run.get() or self._outside
        lines = (run.partial.pop(self._stream, "") + text).split("\n")
        rest = lines.pop()
        if len(rest) > LINE_LIMIT:  # cut once: what is printed may be a hundred megabytes without a newline
            whole = (len(rest) - 1) // LINE_LIMIT * LINE_LIMIT
            lines.append(rest[:whole])
            rest = rest[whole:]
        if rest:
            run.partial[self._stream] = rest
        for line in lines:
            self._line(run, line)
        while len(channel.queue) > BACKLOG_LIMIT:
            real_sleep(0.001)
        return len(text)

    def _line(self, run, line):
        for start in range(0, len(line) or 1, LINE_LIMIT):
            self._channel.put(log_frame(run.id, self._stream, line[start : start + LINE_LIMIT]))
        if not self._ticker.awake:
            self._ticker.wake()

    def finish(self, run):
        rest = run.partial.pop(self._stream, "")
        if rest:
            self._line(run, rest)


def log_frame(run_id, stream, text):
    header = {"t": "log", "s": stream, "at": int(time.time() * 1000), "m": text}
    if run_id is not None:
        header["r"] = run_id
    return frame(header)


def replace(channel, ticker):
    sys.stdout = LineWriter("stdout", sys.stdout, channel, ticker)
    sys.stderr = LineWriter("stderr", sys.stderr, channel, ticker)


def restore():
    """The plain streams again, in a forked child."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def finish_lines(run):
    """Sends what a run has printed without a newline at the end."""
    if run.partial:
        for stream, rest in list(run.partial.items()):
            run.channel.put(log_frame(run.id, stream, rest))
        run.partial.clear()
