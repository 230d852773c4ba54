"""Functions that print and log."""

import asyncio
import logging
import os
import sys
import time

logger = logging.getLogger("printing")
logger.setLevel(logging.INFO)


def says(lines):
    for line in lines:
        print(line)
    return len(lines)


def both(text):
    print(f"{text} on stdout")
    print(f"{text} on stderr", file=sys.stderr)
    logger.warning("%s by logging", text)


async def slowly(name, n):
    """Runs as one of many runs in one event loop."""
    for k in range(n):
        print(f"{name} {k}")
        await asyncio.sleep(0.001)


def threaded(name, n):
    """Runs as one of many runs in one process, with a thread for each run."""
    for k in range(n):
        print(f"{name} {k}")
        time.sleep(0.001)


def gated(folder, n):
    """Prints line k when the gate <folder>/<k> exists."""
    for k in range(n):
        while not os.path.exists(f"{folder}/{k}"):
            time.sleep(0.01)
        print(f"line {k}")
        yield k


def tidy():
    try:
        print("begun")
        yield "begun"
        time.sleep(600)
    finally:
        print("tidied")


def fails():
    print("before")
    raise LookupError("no")
