"""Functions that are interrupted during different activities. Each function prints its reaction."""

import asyncio
import contextlib
import hashlib
import os
import signal
import time


@contextlib.contextmanager
def _tidy():
    print("begun")
    try:
        yield
    finally:
        print("tidied")


def sleeps():
    with _tidy():
        time.sleep(600)


def loops():
    with _tidy():
        while True:
            pass


def computes():
    """Makes short calls into C that release the interpreter's lock."""
    with _tidy():
        data = bytes(1_000_000)
        while True:
            hashlib.sha256(data).digest()


async def awaits():
    with _tidy():
        await asyncio.sleep(600)


async def yields_async():
    with _tidy():
        while True:
            yield "item"
            await asyncio.sleep(0.001)


def yields():
    with _tidy():
        while True:
            yield "item"


def killed():
    print("begun")
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def pid():
    return os.getpid()
