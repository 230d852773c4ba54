"""Functions that go over what app.toml allows."""

import asyncio
import os
import threading
import time


def sleeps():
    time.sleep(60)


def sleeps_late():
    yield "one"
    time.sleep(60)


def large(n):
    return "x" * n


def many(n):
    for _ in range(n):
        yield "x" * 100


async def many_async(n):
    for _ in range(n):
        yield "x" * 100


async def sleeps_async():
    await asyncio.sleep(60)


async def no_json_async():
    yield "fine"
    yield {1, 2}


def refuses():
    """Catches what should end it."""
    while True:
        try:
            time.sleep(60)
        except BaseException:
            print("refused")


def blocks():
    """In C, where nothing reaches it."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=60)


def pid():
    return os.getpid()
