"""What is called all the time while something goes wrong."""

import os
import time
import uuid


def value(value):
    """Returns what it is given."""
    return value


def numbered(n, seconds):
    """Items that tell their number and which execution made them."""
    execution = uuid.uuid4().hex
    for k in range(n):
        time.sleep(seconds)
        yield f"{k} {execution}"


def burst(gate, n, size):
    """One item, and when the gate is there, many large ones at once."""
    yield "begun"
    while not os.path.exists(gate):
        time.sleep(0.01)
    for k in range(n):
        yield f"{k} ".ljust(size, "x")


def entered(mark):
    """Adds a byte to the mark for each time it is called."""
    with open(mark, "ab", buffering=0) as file:
        file.write(b".")
    return "entered"
