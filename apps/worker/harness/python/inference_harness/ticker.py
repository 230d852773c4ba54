# PROTOCOL.md, "Latency": sends the items that a producer left unsent, and detects a reading thread
# that is busy in a function.
from __future__ import annotations

from threading import Lock
from typing import Callable

from .channel import QUEUE_LIMIT, Channel
from .printed import Printed
from .run import Run
from .sleep import real_sleep

TICK = 0.001
# The ticker sleeps after this many ticks without work. A wake-up costs more than a few ticks.
IDLE_TICKS = 50


class Ticker:
    """Looks every millisecond for what is left to do, in a thread of its own."""

    def __init__(self, channel: Channel, runs: dict[str, Run]) -> None:
        self.awake = False
        self._channel = channel
        self._runs = runs
        self._bell = Lock()
        self._bell.acquire()
        # Lines that are printed outside of every run, and lines of threads that outlive their run.
        self.outside: Printed | None = None
        self.late: set[Printed] = set()
        # Called each tick. Returns whether it may have more to do.
        self.watch: Callable[[], bool] = lambda: False

    def wake(self) -> None:
        """Wakes the ticker. Any thread may call it, after the work is visible to the ticker.

        Only the ticker sets `awake`. A cancel may end this method before any instruction, and must
        not leave
        `awake` set without a release."""
        if not self.awake and self._bell.locked():
            try:
                self._bell.release()
            except RuntimeError:
                pass  # another thread released it first

    def serve(self) -> None:
        """Ticks until the process ends."""
        idle = 0
        while True:
            if idle > IDLE_TICKS:
                self.awake = False
                if not self._work():
                    self._bell.acquire()
                self.awake = True
                idle = 0
            real_sleep(TICK)
            idle = 0 if self._work() else idle + 1

    def finish_lines(self) -> None:
        """Queues every waiting line before the process ends.

        These are lines of no run, and lines of runs that have ended."""
        for printed in self.late:
            printed.finish()
        if self.outside is not None:
            self.outside.finish()

    def _work(self) -> bool:
        busy = self.watch()
        for run in list(self._runs.values()):
            items = run.items
            if items is not None and items.pending:
                items.seal_if_free(run.printed)
            if run.printed is not None and run.printed.lines:
                busy = True
                self._send_lines(run.printed)
        if self.outside is not None and self.outside.lines:
            busy = True
            self._send_lines(self.outside)
        if self.late:
            busy = True
            self._send_late()
        if self._channel.queue:
            busy = True
            self._channel.flush()
        return busy

    def _send_lines(self, printed: Printed) -> None:
        """Queues a frame of lines.

        While the pipe is full, lines stay where they are, and the newest displace the oldest."""
        if len(self._channel.queue) <= QUEUE_LIMIT:
            printed.seal()

    def _send_late(self) -> None:
        printed = self.late.pop()
        self._send_lines(printed)
        if printed.lines:
            self.late.add(printed)
