"""Functions that print."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from waiting import wait_for

_pool = ThreadPoolExecutor(2)
logging.basicConfig(format="%(message)s")


def add(a: int, b: int = 2):
    return a + b


def prints():
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"raw\n")
    subprocess.run(["echo", "from a child"], check=True)
    yield 1
    pid = os.fork()
    if pid == 0:
        print("forked")
        os._exit(0)
    os.waitpid(pid, 0)
    yield 2
    print("no newline", end="")


def prints_one_line(megabytes):
    print("x" * (megabytes * 1_000_000))


def says_much(name, n):
    for i in range(n):
        print(name, "prints", i)
        logging.warning("%s logs %s", name, i)
        if i % 7 == 0:
            time.sleep(0.001)
    return n


async def says_much_async(name, n):
    async def part(which):
        for i in range(n // 2):
            print(name, which, "prints", i)
            logging.getLogger("deep.er").error("%s %s logs %s", name, which, i)
            await asyncio.sleep(0)

    await asyncio.gather(part("a"), part("b"))
    return n


def streams_and_says(name, n):
    for i in range(n):
        print(name, "prints", i)
        yield i
        logging.warning("%s logs %s", name, i)


def says_by_others(name, path):
    """Prints by its own threads, by a pool that all runs share, and by a thread that outlives the run until the file exists."""
    own = threading.Thread(target=print, args=(name, "own thread"))
    own.start()
    own.join()
    for i in range(20):
        _pool.submit(print, name, "pool", i).result()

    def late():
        wait_for(path)
        print(name, "late")

    threading.Thread(target=late).start()


async def says_in_a_thread(name):
    await asyncio.to_thread(print, name, "to_thread")
    await asyncio.get_running_loop().run_in_executor(_pool, print, name, "executor")


def prints_a_flood(lines, path):
    """Prints at least `lines` lines, and until the file exists."""
    printed = 0
    while printed < lines or not os.path.exists(path):
        for _ in range(1000):
            print("a line long enough to outrun what sends them " * 10, printed)
            printed += 1
    print("last")
    return printed + 1


def child_prints_a_flood(seconds):
    child = subprocess.Popen(["yes"])
    time.sleep(seconds)
    child.kill()
    child.wait()


def child_prints_one_line(seconds):
    child = subprocess.Popen(["cat", "/dev/zero"])
    time.sleep(seconds)
    child.kill()
    child.wait()
