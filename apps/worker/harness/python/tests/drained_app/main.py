"""Functions for drained replicas.

Each function ends when the other end of a pipe closes, so all functions end at the same moment."""

import asyncio
import os
import threading


def gives(fd):
    os.read(fd, 1)
    return "x" * 1000


def streams(fd):
    yield "first"
    os.read(fd, 1)
    yield "last"


def prints(fd):
    os.read(fd, 1)
    print("printed")


async def awaits(fd):
    loop, gate = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(target=lambda: (os.read(fd, 1), loop.call_soon_threadsafe(gate.set))).start()
    await gate.wait()


def fails(fd):
    os.read(fd, 1)
    raise ValueError("so")


def returns():
    """Ends immediately."""


def teardown():
    print("torn down")
