"""Functions that tests control through files: the test creates a gate, and the function creates a mark."""

import asyncio
import functools
import os
import time


def _mark(path, text=""):
    """Writes and renames the file, so that a reader never sees half a text."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def gated(folder, n):
    """Yields item k when the gate <folder>/<k> exists."""
    for k in range(n):
        while not os.path.exists(f"{folder}/{k}"):
            time.sleep(0.01)
        yield f"item {k}"


def stepped(gate):
    """Yields one item immediately, and a second item when the gate exists."""
    yield "begun"
    while not os.path.exists(gate):
        time.sleep(0.01)
    yield "done"


async def gated_async(folder, n):
    for k in range(n):
        while not os.path.exists(f"{folder}/{k}"):
            await asyncio.sleep(0.01)
        yield f"item {k}"


def items(items):
    """Yields the given items."""
    yield from items


async def items_async(items):
    """Yields the given items."""
    for item in items:
        yield item


class _Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


def iterator(n):
    return _Countdown(n)


def _wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@_wrapped
def decorated(n):
    yield from range(n)


async def coroutine(value):
    await asyncio.sleep(0)
    return value


def value(value):
    """Returns its parameter."""
    return value


def echo(**params):
    return params


def with_status(status):
    return {"status_code": status}


def named(run_id):
    return run_id


def sleeping(n, seconds):
    for k in range(n):
        time.sleep(seconds)
        yield k


def resumable(n, size, seconds, gate=None):
    """Yields numbered items that compression hardly shrinks. The first item sets a short reconnection time.

    The second half follows when the gate exists."""
    for k in range(n):
        while gate and k == n // 2 and not os.path.exists(gate):
            time.sleep(0.01)
        if seconds:
            time.sleep(seconds)
        text = f"{k} {os.urandom(size // 2).hex()}"
        yield f"retry: 10\ndata: {text}\n\n" if k == 0 else text


def tidy(mark):
    """Yields once, then sleeps. Writes a mark when it is interrupted."""
    try:
        yield "begun"
        time.sleep(600)
    finally:
        _mark(mark, "tidied")


def waits(gate, started, run_id):
    """Writes its run's id to the mark `started`, and returns when the gate exists."""
    _mark(started, run_id)
    while not os.path.exists(gate):
        time.sleep(0.01)
    return "waited"


def once(mark, gate):
    """Adds a byte to the mark at each call, and returns when the gate exists."""
    with open(mark, "ab", buffering=0) as file:
        file.write(b".")
    while not os.path.exists(gate):
        time.sleep(0.01)
    return "once"


def counted(mark, n, size):
    """Adds a byte to the mark before each item."""
    with open(mark, "ab", buffering=0) as file:
        for k in range(n):
            file.write(b".")
            yield f"{k} ".ljust(size, "x")


def raises(text="no"):
    raise LookupError(text)


def raises_late(n=2):
    yield from range(n)
    raise LookupError("late")


def _hidden():
    return "hidden"
