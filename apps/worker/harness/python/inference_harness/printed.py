# Contract 5, `/logs`: the lines that one run has printed and that are not sent yet; the newest are kept, as in the run's log itself.
from collections import deque
from _thread import get_ident
from threading import Lock
from time import time

from .frames import log_frame

# A longer line is cut into several.
LINE_LIMIT = 8 * 1024
# What a line counts beside its characters, so that a flood of empty ones is bounded too.
LINE_COST = 16
# Lines of one run share a frame up to this size, and one frame goes out a tick: a flood leaves the pipe to others.
FRAME_SIZE = 64 * 1024


class Printed:
    """Any thread of the run adds lines; one at a time takes them.

    Whoever adds holds no lock, since a cancel may interrupt it anywhere, and a destructor that prints may come in between: a line is one
    entry of a deque, with the count of what was printed before it, from which follows how much waits."""

    def __init__(self, quoted_run, channel, limit):
        self._quoted_run = quoted_run
        self._channel = channel
        self._limit = limit
        self._total = 0
        # Where the oldest line that waits begins, at the latest.
        self._gone = 0
        self._dropped = 0
        self._told = 0
        self.lines = deque()
        # What was printed without a newline yet, by thread: those of a run share neither a line nor its end.
        self.partial = {"o": {}, "e": {}}
        # The run has ended, and nobody but the ticker will look here again.
        self.over = False
        self._sealing = Lock()

    def write(self, stream, text):
        """`stream` is `o` or `e`. Returns whether there is anything to send."""
        partial = self.partial[stream]
        ident = get_ident()
        if text == "\n":  # the second half of every print()
            self._add(stream, partial.pop(ident, ""))
            return True
        if partial:
            text = partial.pop(ident, "") + text
        if "\n" not in text:
            if len(text) <= LINE_LIMIT:
                partial[ident] = text
                return False
            lines, rest = [], text
        else:
            lines = text.split("\n")
            rest = lines.pop()
        if len(rest) > LINE_LIMIT:  # cut once: what is printed may be a hundred megabytes without a newline
            whole = (len(rest) - 1) // LINE_LIMIT * LINE_LIMIT
            lines.append(rest[:whole])
            rest = rest[whole:]
        if rest:
            partial[ident] = rest
        for line in lines:
            self._add(stream, line)
        return True

    def _add(self, stream, line):
        if len(line) > LINE_LIMIT:
            for start in range(0, len(line), LINE_LIMIT):
                self._add(stream, line[start : start + LINE_LIMIT])
            return
        before = self._total
        self._total = total = before + len(line) + LINE_COST
        self.lines.append((before, stream, time(), line))
        if total - self._gone > self._limit:
            self._drop(total)

    def _drop(self, total):
        lines = self.lines
        try:
            while total - lines[0][0] > self._limit and len(lines) > 1:
                lines.popleft()
                self._dropped += 1
            self._gone = lines[0][0]
        except IndexError:
            self._gone = total  # all of it has just been taken to be sent

    def finish(self):
        """Everything that was printed, unfinished lines too, goes to the channel. What threads of the run print later is the ticker's to send."""
        self.over = True
        for stream, partial in self.partial.items():
            for ident in list(partial):
                rest = partial.pop(ident, "")
                if rest:
                    self._add(stream, rest)
        self.seal(len(self.lines))

    def seal(self, most=0):
        """Puts a frame of waiting lines on the channel; more, as long as fewer than `most` have been taken."""
        with self._sealing:
            while True:
                taken = self._seal_frame()
                most -= taken
                if taken == 0 or most <= 0:
                    return

    def _seal_frame(self):
        lines, parts, size, start = self.lines, [], 0, self._gone
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
            self._channel.put(log_frame(self._quoted_run, len(parts), dropped - self._told, "\n".join(parts)))
            self._told = dropped
        return len(parts)
