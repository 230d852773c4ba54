"""The functions that the benchmarks call."""
import asyncio
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import List, Literal, Optional
from uuid import UUID


def echo(**params):
    return params


@dataclass
class Order:
    """One of the items of `typed_large`."""
    id: UUID
    when: datetime
    count: int
    note: Optional[str] = None


def untyped_small(image, width=640, mode="fit"):
    return width


def typed_small(image: str, width: int = 640, mode: Literal["fit", "fill"] = "fit"):
    return width


def untyped_large(orders):
    return len(orders)


def typed_large(orders: List[Order]):
    return len(orders)


def items(n: int = 1000, size: int = 64):
    """Yields n items of exactly `size` bytes as fast as the service takes them."""
    tail = "." + "x" * (size - 9)
    for i in range(n):
        yield f"{i + 1:08d}{tail}"


def ticks(n: int = 600, every_s: float = 1.0):
    for i in range(n):
        yield i + 1
        time.sleep(every_s)


def sleeps():
    yield "begun"
    time.sleep(600)


def loops():
    yield "begun"
    while True:
        pass


async def awaits():
    yield "begun"
    await asyncio.sleep(600)


def yields():
    while True:
        yield "x" * 64


def blocks():
    """Blocks in C code, where no exception is raised: the process is replaced after `cancel_grace`."""
    yield "begun"
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=600)
