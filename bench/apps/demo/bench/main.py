"""What the benchmarks call."""
import time


def echo(**params):
    return params


def items(n: int = 1000, size: int = 64):
    """n items of exactly `size` bytes, as fast as they are taken."""
    tail = "." + "x" * (size - 9)
    for i in range(n):
        yield f"{i + 1:08d}{tail}"


def ticks(n: int = 600, every_s: float = 1.0):
    for i in range(n):
        yield i + 1
        time.sleep(every_s)
