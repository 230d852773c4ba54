"""One run at a time, and a queue of two runs that may wait for two seconds."""

import os
import time


def waits(gate, started):
    """Adds a byte to `started`, and returns when the gate exists."""
    with open(started, "ab", buffering=0) as file:
        file.write(b".")
    while not os.path.exists(gate):
        time.sleep(0.01)
    return "waited"
