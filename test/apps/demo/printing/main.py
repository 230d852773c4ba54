"""Functions that say what they do, by print and by logging."""

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
    """Many of these share one event loop."""
    for k in range(n):
        print(f"{name} {k}")
        await asyncio.sleep(0.001)


def threaded(name, n):
    """Many of these share one process, a thread each."""
    for k in range(n):
        print(f"{name} {k}")
        time.sleep(0.001)


def gated(folder, n):
    """Prints line k when the gate <folder>/<k> is there."""
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
