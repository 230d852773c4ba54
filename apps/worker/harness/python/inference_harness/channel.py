# PROTOCOL.md: everything the harness sends, in order, by whichever thread has something to send.
import os
from collections import deque
from threading import Lock
from time import monotonic

# With this many frames waiting, a producer waits for the writer: the pipe's back-pressure reaches every generator.
QUEUE_LIMIT = 16

WRITE_SIZE = 256 * 1024


class Channel:
    """The outgoing half of fd 3. A frame is put in the queue, then written by the first thread that gets the lock; nobody waits for
    the lock only to write, since its holder drains what others put."""

    def __init__(self, fd):
        self.fd = fd
        self.queue = deque()
        # When the last write ended: a frame goes out at once when this is 1 ms ago.
        self.written_at = 0.0
        self._writing = Lock()

    def put(self, data):
        if self.fd is None:
            os._exit(0)  # a forked child that came back out of the function: its parent speaks for the run
        self.queue.append(data)

    def flush(self):
        """Writes what is queued, unless another thread is just doing so."""
        # Asked again after the release: what was put between the holder's last look and its release would wait otherwise.
        while self.queue and self._writing.acquire(False):
            try:
                self._drain()
            finally:
                self._writing.release()

    def send(self, data):
        self.put(data)
        self.flush()

    def finish(self, data):
        """Sends the process's last frame. Returns when this frame, and every frame before it, is on the pipe.

        `flush` may return while another thread still writes. That thread is a daemon: the end of the main thread would end it in its write."""
        self.put(data)
        with self._writing:
            self._drain()

    def hold_back(self):
        """Waits while the pipe is full and others' frames have piled up."""
        if len(self.queue) > QUEUE_LIMIT:
            with self._writing:
                pass

    def _drain(self):
        queue = self.queue
        while queue:
            data = queue.popleft()
            if queue:
                parts, size = [data], len(data)
                while queue and size < WRITE_SIZE:
                    data = queue.popleft()
                    parts.append(data)
                    size += len(data)
                data = b"".join(parts)
            self._write(data)
        self.written_at = monotonic()

    def _write(self, data):
        try:
            written = os.write(self.fd, data)
            if written < len(data):
                rest = memoryview(data)
                while written < len(rest):
                    written += os.write(self.fd, rest[written:])
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)  # the worker has gone; nobody is left to run for
