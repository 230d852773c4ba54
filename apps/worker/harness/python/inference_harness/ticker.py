# PROTOCOL.md, "Latency": sends the items that a producer left unsent, and detects a reading thread that is busy in a function.
from threading import Lock

from .channel import QUEUE_LIMIT
from .sleep import real_sleep

TICK = 0.001
# The ticker sleeps after this many ticks without work. A wake-up costs more than a few ticks.
IDLE_TICKS = 50


class Ticker:
    def __init__(self, channel, runs):
        self.awake = False
        self._channel = channel
        self._runs = runs
        self._bell = Lock()
        self._bell.acquire()
        # Lines that are printed outside of every run, and lines of threads that outlive their run.
        self.outside = None
        self.late = set()
        # Called each tick. Returns whether it may have more to do.
        self.watch = lambda: False

    def wake(self):
        """Wakes the ticker. Any thread may call it, after the work is visible to the ticker.

        Only the ticker sets `awake`. A cancel may end this method before any instruction, and must not leave `awake` set without a release."""
        if not self.awake and self._bell.locked():
            try:
                self._bell.release()
            except RuntimeError:
                pass  # another thread released it first

    def serve(self):
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

    def finish_lines(self):
        """Queues every waiting line before the process ends: lines of no run, and lines of runs that have ended."""
        for printed in (*self.late, self.outside):
            printed.finish()

    def _work(self):
        busy = self.watch()
        for run in list(self._runs.values()):
            if run.pending and run.lock.acquire(False):
                try:
                    run.seal()
                finally:
                    run.lock.release()
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

    def _send_lines(self, printed):
        """Queues a frame of lines. While the pipe is full, lines stay where they are, and the newest displace the oldest."""
        if len(self._channel.queue) <= QUEUE_LIMIT:
            printed.seal()

    def _send_late(self):
        printed = self.late.pop()
        self._send_lines(printed)
        if printed.lines:
            self.late.add(printed)
