"""What is called all the time while something goes wrong."""

import time


def value(value):
    """Returns what it is given."""
    return value


def sleeping(n, seconds):
    for k in range(n):
        time.sleep(seconds)
        yield k


def entered(mark):
    """Adds a byte to the mark for each time it is called."""
    with open(mark, "ab", buffering=0) as file:
        file.write(b".")
    return "entered"
