# PROTOCOL.md, "Threads": with `concurrency` 1, the function runs in the main thread, where a signal interrupts even a blocking call.
import threading
from _thread import get_ident
from queue import SimpleQueue

from .sleep import here


class Single:
    def __init__(self, reader, channel, handle, call):
        self._reader = reader
        self._channel = channel
        self._handle = handle
        self._call = call
        self._inbox = SimpleQueue()

    def start(self):
        threading.Thread(target=self._read, daemon=True).start()

    def serve(self):
        """Runs the work of the main thread until `stop`."""
        here.ident = get_ident()
        while True:
            work = self._inbox.get()
            if work is None:
                return
            work()
            self._channel.flush()

    def submit(self, work):
        self._inbox.put(work)

    def stop(self):
        self._inbox.put(None)

    def _read(self):
        while True:
            run = self._handle(self._reader.read())
            if run is not None:
                self._inbox.put(lambda run=run: self._call(run))
