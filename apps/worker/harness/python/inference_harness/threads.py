# PROTOCOL.md, "Threads": leader and followers. The thread that reads a call runs the call itself,
# which saves a hand-over to another thread. If the function has not returned after a tick, another
# thread starts to read.
from __future__ import annotations

import threading
from typing import Callable

from . import sleep
from .channel import Channel
from .frames import Message, Reader
from .here import here
from .interrupt import ThreadInterrupt
from .run import Run
from .ticker import Ticker

# Large enough that deep recursion ends in a RecursionError. On Python 3.9 to 3.13, a sort whose
# key sorts overflows only smaller stacks. Only touched pages cost memory (16 KiB for a small
# function).
STACK_SIZE = 4 * 1024 * 1024

# Answers of calls that came together are sent in portions: the worker handles a portion while the
# next is made. Smaller portions cost more in wake-ups than they save.
PORTION = 12


class Threads:
    """Runs many functions at a time, each in a thread."""

    def __init__(
        self,
        reader: Reader,
        channel: Channel,
        ticker: Ticker,
        handle: Callable[[Message | None], Run | None],
        call: Callable[[Run], None],
    ) -> None:
        self._reader = reader
        self._channel = channel
        self._ticker = ticker
        # `handle(message)` returns the Run to call, or None for every other message.
        self._handle = handle
        self._call = call
        self._lock = threading.Lock()
        # A locked lock for each thread without work. Its release makes the thread read.
        self._idle: list[threading.Lock] = []
        # The run that the reading thread executes.
        self._leading: Run | None = None
        # The reading thread is busy in a function, and no other thread reads yet.
        self._unled = False
        # The value of `_leading` at the last tick.
        self._seen: Run | None = None
        self._stopped = threading.Event()
        sleep.replace()

    def start(self) -> None:
        """Starts to read messages."""
        self._ticker.watch = self._watch
        threading.stack_size(STACK_SIZE)
        self._promote()

    def serve(self) -> None:
        """Returns after `stop`."""
        self._stopped.wait()

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work()` in a new thread."""
        threading.Thread(target=self._alone, args=(work,), daemon=True).start()

    def stop(self) -> None:
        """Makes `serve` return. Any thread may call it."""
        self._stopped.set()

    def _alone(self, work: Callable[[], None]) -> None:
        here.interrupt = ThreadInterrupt()
        work()
        self._channel.flush()

    def _promote(self) -> bool:
        """Makes another thread read. Returns False if no thread is idle and none can be started."""
        with self._lock:
            bell = self._idle.pop() if self._idle else None
        if bell is not None:
            bell.release()
            return True
        try:
            threading.Thread(target=self._work, daemon=True).start()
        except (
            RuntimeError,
            MemoryError,
        ):  # functions have started as many threads as the system allows
            return False
        return True

    def _work(self) -> None:
        here.interrupt = ThreadInterrupt()
        bell = threading.Lock()
        bell.acquire()
        while True:
            self._lead()
            with self._lock:
                self._idle.append(bell)
            bell.acquire()

    def _lead(self) -> None:
        """Reads and runs calls until another thread reads."""
        reader, channel, ticker = self._reader, self._channel, self._ticker
        while True:
            run = self._handle(reader.read())
            if run is None:
                continue
            self._leading = run
            if not ticker.awake:
                ticker.wake()
            self._call(run)
            with self._lock:
                leads = self._leading is run
                if leads:
                    self._leading = None
            if not leads:
                channel.flush()
                return
            # Otherwise, the next call's answer may share the write.
            if not reader.buffered or len(channel.queue) >= PORTION:
                channel.flush()

    def _watch(self) -> bool:
        run = self._leading
        if run is not None and run is self._seen:
            with self._lock:
                if self._leading is run:
                    self._leading = None
                    self._unled = True
        if (
            self._unled
        ):  # retried each tick, and no longer needed once the busy thread's call is over
            self._unled = not self._promote()
        self._seen = run
        return self._unled or run is not None
