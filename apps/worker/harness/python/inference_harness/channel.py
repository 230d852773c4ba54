# PROTOCOL.md: sends the frames of every thread in order.
from __future__ import annotations

import os
from collections import deque
from threading import Lock
from time import monotonic

# With this many queued frames, a producer waits for the writer. So the pipe's backpressure reaches
# every generator.
QUEUE_LIMIT = 16

# A frame is sent immediately if the last write was so long ago (s). Measured: a balance of latency
# and system calls.
FRAME_AGE = 0.001

WRITE_SIZE = 256 * 1024


class Channel:
    """The sending half of fd 3.

    A thread queues a frame; the first thread that gets the lock writes the queue.

    No thread waits for the lock only to write, because the lock's holder also writes the frames of
    other threads."""

    def __init__(self, fd: int) -> None:
        # None in a forked child.
        self.fd: int | None = fd
        self.queue: deque[bytes] = deque()
        # From this time on, a frame is sent immediately.
        self.due_at = 0.0
        self._writing = Lock()

    def put(self, data: bytes) -> None:
        """Queues a frame."""
        if self.fd is None:
            os._exit(0)  # a forked child returned from the function; its parent reports the run
        self.queue.append(data)

    def flush(self) -> None:
        """Writes the queue, unless another thread is writing it."""
        # The loop checks again after the release. A frame queued between the holder's last check
        # and its release would otherwise stay queued.
        while self.queue and self._writing.acquire(False):
            try:
                self._drain()
            finally:
                self._writing.release()

    def send(self, data: bytes) -> None:
        """Queues a frame and writes the queue."""
        self.put(data)
        self.flush()

    def finish(self, data: bytes) -> None:
        """Sends the process's last frame.

        Returns when this frame, and every frame before it, is on the pipe.

        `flush` may return while another thread still writes. That thread is a daemon: the end of
        the main
        thread would end it in its write."""
        self.put(data)
        with self._writing:
            self._drain()

    def hold_back(self) -> None:
        """Waits while the pipe is full and frames of other threads have piled up."""
        if len(self.queue) > QUEUE_LIMIT:
            with self._writing:
                pass

    def _drain(self) -> None:
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
        self.due_at = monotonic() + FRAME_AGE

    def _write(self, data: bytes) -> None:
        fd = self.fd
        if fd is None:
            return
        try:
            written = os.write(fd, data)
            if written < len(data):
                rest = memoryview(data)
                while written < len(rest):
                    written += os.write(fd, rest[written:])
        except (BrokenPipeError, ConnectionResetError):
            os._exit(0)  # the worker's end is closed, so no results can be delivered
