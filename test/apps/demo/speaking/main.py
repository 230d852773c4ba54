"""Functions that print and log in every possible way."""

import asyncio
import logging
import os
import subprocess
import sys
import time

logging.basicConfig(format="%(levelname)s %(message)s")


def speaks(name, n):
    for i in range(n):
        print(name, "prints", i)
        logging.warning("%s logs %s", name, i)
        time.sleep(0.002)


async def speaks_async(name, n):
    for i in range(n):
        print(name, "prints", i)
        logging.warning("%s logs %s", name, i)
        await asyncio.sleep(0.002)


def speaks_raw(gate=None):
    """Writes outside the interpreter, as C code and child processes do."""
    print("first", file=sys.stderr)
    os.write(1, b"from C\n")
    subprocess.run(["echo", "from a child"], check=True)
    while gate is not None and not os.path.exists(gate):
        time.sleep(0.01)
    return "spoken"


def raises():
    print("before")
    raise ValueError("no luck")


def streams(n):
    for i in range(n):
        print("before", i)
        yield i


def floods(n):
    for i in range(n):
        print("line", i, "." * 40)


def quick(value):
    return value
