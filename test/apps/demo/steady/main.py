"""Functions that the tests call all the time during faults."""

import os
import time
import uuid


def value(value):
    """Returns its parameter."""
    return value


def numbered(n, seconds):
    """Yields items with their number and an id of the execution."""
    execution = uuid.uuid4().hex
    for k in range(n):
        time.sleep(seconds)
        yield f"{k} {execution}"


def burst(gate, n, size):
    """Yields one item and, when the gate exists, many large items at once."""
    yield "begun"
    while not os.path.exists(gate):
        time.sleep(0.01)
    for k in range(n):
        yield f"{k} ".ljust(size, "x")


def entered(mark):
    """Adds a byte to the mark at each call."""
    with open(mark, "ab", buffering=0) as file:
        file.write(b".")
    return "entered"
