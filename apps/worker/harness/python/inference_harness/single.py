# PROTOCOL.md, "Threads": with `concurrency` 1, the function runs in the main thread, where a
# signal interrupts even a blocking call.
from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Callable

from .channel import Channel
from .frames import Message, Reader
from .here import here
from .interrupt import SignalInterrupt
from .run import Run


class Single:
    """Runs one function at a time. Another thread reads the worker's messages."""

    def __init__(
        self,
        reader: Reader,
        channel: Channel,
        handle: Callable[[Message | None], Run | None],
        call: Callable[[Run], None],
    ) -> None:
        self._reader = reader
        self._channel = channel
        self._handle = handle
        self._call = call
        # None ends the main thread's work.
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        here.interrupt = SignalInterrupt()

    def start(self) -> None:
        """Starts to read messages."""
        threading.Thread(target=self._read, daemon=True).start()

    def serve(self) -> None:
        """Runs the work of the main thread until `stop`."""
        while True:
            work = self._inbox.get()
            if work is None:
                return
            work()
            self._channel.flush()

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work()` in the main thread."""
        self._inbox.put(work)

    def stop(self) -> None:
        """Makes `serve` return. Any thread may call it."""
        self._inbox.put(None)

    def _read(self) -> None:
        while True:
            run = self._handle(self._reader.read())
            if run is not None:
                self._inbox.put(lambda run=run: self._call(run))
