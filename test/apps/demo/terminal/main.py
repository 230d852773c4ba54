"""Functions that the tests of the command line call."""

import logging
import os
import time


def echo(value):
    return value


def words(n=3):
    for number in range(n):
        logging.warning("line %d", number)
        yield f"word {number}"


def fails():
    raise ValueError("this function always fails")


def opens(gate):
    """Yields an item, and the second item when the gate exists."""
    yield "first"
    while not os.path.exists(gate):
        time.sleep(0.02)
    yield "second"


def waits():
    print("begun")
    time.sleep(600)
