# PROTOCOL.md, "Latency": sends what a producer left behind, and sees when the reading thread is held up in a function.
from threading import Lock

from .channel import QUEUE_LIMIT
from .sleep import real_sleep

TICK = 0.001
# Ticks without work until it sleeps; a wake-up costs more than a few ticks.
IDLE_TICKS = 50


class Ticker:
    def __init__(self, channel, runs):
        self.awake = False
        self._channel = channel
        self._runs = runs
        self._bell = Lock()
        self._bell.acquire()
        # What is printed outside of every run; and by threads that outlive theirs.
        self.outside = None
        self.late = set()
        # What else is looked after each tick; says whether there may be more to do.
        self.watch = lambda: False

    def wake(self):
        """From any thread, after the work is visible to the ticker.

        Only the ticker sets `awake`. A cancel may end this method before any instruction, and must not leave `awake` set without a release."""
        if not self.awake and self._bell.locked():
            try:
                self._bell.release()
            except RuntimeError:
                pass  # another thread was faster

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
        """Queues every printed line that still waits, for the end of the process: lines of no run, and of runs that have ended."""
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
        """While the pipe is full they wait where they are, and the newest displace the oldest."""
        if len(self._channel.queue) <= QUEUE_LIMIT:
            printed.seal()

    def _send_late(self):
        printed = self.late.pop()
        self._send_lines(printed)
        if printed.lines:
            self.late.add(printed)
