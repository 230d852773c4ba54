# Contract 5, "Logs: `GET /runs/{run_id}/logs`": the lines that a run printed and that are not sent
# yet. The newest are kept, as in the run's log.
from __future__ import annotations

from collections import deque
from threading import Lock, get_ident
from time import time

from .channel import Channel
from .frames import log_frame

# A longer line is cut into several lines.
LINE_LIMIT = 8 * 1024
# The cost of a line beside its characters, so that a flood of empty lines is bounded too.
LINE_COST = 16
# The lines of one run share a frame up to this size. Each run sends one frame a tick, so a flood
# leaves room in the pipe for other runs.
FRAME_SIZE = 64 * 1024


class Printed:
    """Lines of one run. Any thread of the run adds lines. One thread at a time removes lines.

    A thread adds lines without a lock, because a cancel or a printing destructor may interrupt it
    anywhere.
    A line is one entry of a deque. It stores the size of all earlier output, from which the
    waiting size follows."""

    def __init__(self, quoted_run: str | None, channel: Channel, limit: int) -> None:
        self._quoted_run = quoted_run
        self._channel = channel
        self._limit = limit
        self._total = 0
        # At most the position where the oldest waiting line begins.
        self._gone = 0
        self._dropped = 0
        self._told = 0
        # (size of all earlier output, stream, time, line)
        self.lines: deque[tuple[int, str, float, str]] = deque()
        # Output without a newline yet, by thread, because the threads of a run do not share lines.
        self.partial: dict[str, dict[int, str]] = {"o": {}, "e": {}}
        # The run has ended, so only the ticker sends later lines.
        self.over = False
        self._sealing = Lock()

    def write(self, stream: str, text: str) -> bool:
        """Adds text. `stream` is `o` or `e`. Returns whether there is a line to send."""
        partial = self.partial[stream]
        ident = get_ident()
        if text == "\n":  # print() writes the newline separately
            self._add(stream, partial.pop(ident, ""))
            return True
        if partial:
            text = partial.pop(ident, "") + text
        if "\n" not in text:
            if len(text) <= LINE_LIMIT:
                partial[ident] = text
                return False
            lines: list[str] = []
            rest = text
        else:
            lines = text.split("\n")
            rest = lines.pop()
        if (
            len(rest) > LINE_LIMIT
        ):  # cut only once, because a print may have 100 MB without a newline
            whole = (len(rest) - 1) // LINE_LIMIT * LINE_LIMIT
            lines.append(rest[:whole])
            rest = rest[whole:]
        if rest:
            partial[ident] = rest
        for line in lines:
            self._add(stream, line)
        return True

    def _add(self, stream: str, line: str) -> None:
        if len(line) > LINE_LIMIT:
            for start in range(0, len(line), LINE_LIMIT):
                self._add(stream, line[start : start + LINE_LIMIT])
            return
        before = self._total
        self._total = total = before + len(line) + LINE_COST
        self.lines.append((before, stream, time(), line))
        if total - self._gone > self._limit:
            self._drop(total)

    def _drop(self, total: int) -> None:
        lines = self.lines
        try:
            while total - lines[0][0] > self._limit and len(lines) > 1:
                lines.popleft()
                self._dropped += 1
            self._gone = lines[0][0]
        except IndexError:
            self._gone = total  # another thread has just taken all lines

    def finish(self) -> None:
        """Sends every printed line, and unfinished lines.

        The ticker sends lines that threads of the run print later."""
        self.over = True
        for stream, partial in self.partial.items():
            for ident in list(partial):
                rest = partial.pop(ident, "")
                if rest:
                    self._add(stream, rest)
        self.seal(len(self.lines))

    def seal(self, most: int = 0) -> None:
        """Queues one frame of waiting lines, and further frames until `most` lines are taken."""
        with self._sealing:
            while True:
                taken = self._seal_frame()
                most -= taken
                if taken == 0 or most <= 0:
                    return

    def _seal_frame(self) -> int:
        lines, size, start = self.lines, 0, self._gone
        parts: list[str] = []
        while size < FRAME_SIZE:
            try:
                start, stream, at, line = lines.popleft()
            except IndexError:
                break
            parts.append(f"{stream}{int(at * 1000)} {line}")
            size += len(line) + LINE_COST
        self._gone = max(self._gone, start)
        dropped = self._dropped
        if parts:
            text = "\n".join(parts)
            self._channel.put(log_frame(self._quoted_run, len(parts), dropped - self._told, text))
            self._told = dropped
        return len(parts)
