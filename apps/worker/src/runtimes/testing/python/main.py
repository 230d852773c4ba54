"""Functions for the conformance suites."""

import asyncio
import functools
import os
import signal
import sys
import threading
import time
from collections import deque  # imported, so not public

from waiting import steps

_counter = 0


def setup():
    print("set up")


def echo(**params):
    """Returns its parameters.

    Not the first line."""
    return params


def nothing():
    return None


def add(a: int, b: int = 2):
    return a + b


def named(run_id):
    return run_id


def with_status(status):
    return {"status_code": status}


def positional(a, b=2, /, c=3, *, d=4):
    return [a, b, c, d]


def positional_run(run_id, /, **more):
    return [run_id, more]


class HttpError(Exception):
    """An exception like FastAPI's HTTPException."""

    def __init__(self, status_code, detail=None, headers=None):
        super().__init__("the text")
        self.status_code = status_code
        self.detail = detail
        self.headers = headers


def raises_status(**fields):
    raise HttpError(**fields)


def raises_status_badly():
    class Bad(Exception):
        @property
        def status_code(self):
            raise RuntimeError("no")

    raise Bad("bad")


def yields_status(status):
    yield {"status_code": status}


def count(n=3):
    for i in range(n):
        yield f"item {i}"


def mixed():
    yield "text"
    yield {"json": 1}
    yield "two\nlines"
    yield ""
    yield 1.0
    yield "data: {}\n\n"


def step_by_step(folder, n=3):
    yield from steps(folder, n)


def meets(folder, name, n):
    """Ends when `n` runs of it are open at the same time."""
    yield "waits"
    open(os.path.join(folder, name), "w").close()
    while len(os.listdir(folder)) < n:
        time.sleep(0.01)
    yield "met"


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


def iterator():
    return Countdown(3)


def loud(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@loud
def decorated():
    yield 1
    yield 2


@wrapped
def decorated_with_wraps(x):
    return x


async def async_value(x):
    await asyncio.sleep(0)
    return x


async def async_items(n=3):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def async_sleeper():
    try:
        yield "asleep"
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0)
        print("cleaned up")


async def gives_a_generator(n=3):
    return count(n)


def raises(text="no"):
    raise ValueError(text)


def breaks_later():
    yield 1
    raise ValueError("later")


def type_error_inside():
    return len(5)


def not_json():
    return {1j}


def not_a_number():
    return float("nan")


def raw_bytes():
    yield "fine"
    yield b"\xff"


def large_result(n):
    return "x" * n


def large_item(n):
    yield "fine"
    yield "x" * n


def much(n, size):
    for _ in range(n):
        yield "x" * size


def surrogate():
    return "a\ud800b"


def surrogate_items():
    yield "a\ud800b"
    yield ["a\ud800b"]


def prints():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    yield 1


def sleeper():
    try:
        yield "asleep"
        time.sleep(600)
    finally:
        print("cleaned up")


def sleeper_that_takes_time():
    try:
        yield "asleep"
        time.sleep(600)
    finally:
        time.sleep(0.1)
        print("cleaned up")


def looper():
    yield "looping"
    while True:
        pass


def stubborn():
    yield "stubborn"
    while True:
        try:
            time.sleep(600)
        except:  # noqa: E722
            pass


def notes_signals(path):
    """Ignores its cancel, and creates a file when it gets SIGTERM."""
    signal.signal(signal.SIGTERM, lambda _signal, _frame: open(path, "w").close())
    yield from stubborn()


def blocked():
    """Waits in a C call that no exception interrupts."""
    yield "blocked"
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=600)


def brief(ms):
    end = time.monotonic() + ms / 1000
    while time.monotonic() < end:
        if ms > 3:
            time.sleep(0.001)
    return "whole"


def produced():
    return _counter


def flood(n=10_000):
    global _counter
    for i in range(n):
        _counter = i + 1
        yield f"item {i}"


def flood_large(n=1000):
    global _counter
    for i in range(n):
        _counter = i + 1
        yield "x" * 65_536


def exits():
    os._exit(3)


def segfaults():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(600)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def crashes_after_an_item():
    yield "one"
    time.sleep(0.05)
    os._exit(4)


def recurses(through_c=False):
    def deeper(n):
        return sorted([n], key=deeper_key)[0] if through_c else deeper(n + 1)

    def deeper_key(n):
        return deeper(n + 1)

    return deeper(0)


def pid():
    return os.getpid()


def environment():
    return dict(os.environ)


def _private():
    return deque
