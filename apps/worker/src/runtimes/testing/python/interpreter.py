"""Functions that change the interpreter, for the tests of the Python runtime."""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass

from waiting import steps


def add(a: int, b: int = 2):
    return a + b


def step_by_step(folder, n=3):
    yield from steps(folder, n)


async def async_value(x):
    await asyncio.sleep(0)
    return x


async def cancelled_twice():
    """Notices the cancel before the cancel of its task, which arrives during the clean-up.

    A cancel that comes while the harness sends an item needs no cancel of the task. Then none arrives."""
    loop, late = asyncio.get_running_loop(), []
    loop.call_soon_threadsafe = lambda *call, **_context: late.append(call)
    try:
        while True:
            yield "awake"
            await asyncio.sleep(0.001)
    finally:
        for _ in range(100):
            if late:
                break
            await asyncio.sleep(0.001)
        del loop.call_soon_threadsafe
        for call in late:
            loop.call_soon(*call)
        await asyncio.sleep(0.001)
        print("cleaned up")


def leaves():
    sys.exit(3)


@dataclass
class Leaving:
    code: int

    def __post_init__(self):
        sys.exit(self.code)


def never_called(x: Leaving): ...


def forked_child_comes_back():
    if os.fork() == 0:
        return "child"
    return "parent"


def forked_child_stays():
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    os._exit(3)


def looper():
    yield "looping"
    while True:
        pass


def traces():
    def tracer(frame, event, argument):
        raise RuntimeError("traced")

    sys.settrace(tracer)
    sys.setprofile(lambda frame, event, argument: None)


def traced():
    return [sys.gettrace() is not None, sys.getprofile() is not None]


async def traces_async():
    traces()
    await asyncio.sleep(0)


async def traces_quietly():
    sys.settrace(lambda frame, event, argument: None)


async def traced_async():
    return traced()


def leaves_no_room_for_threads():
    """Behaves like a system that allows no further threads, for longer than another thread needs to start reading."""
    start = threading.Thread.start

    def refused(thread):
        raise RuntimeError("can't start new thread")

    threading.Thread.start = refused
    time.sleep(0.2)
    threading.Thread.start = start


def deaf_to_cancels():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def pool_of_processes():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.map(abs, [-1])
