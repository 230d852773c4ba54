"""Functions for the conformance suite and for the tests of the Python runtime."""

import asyncio
import functools
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque  # imported, so not public
from concurrent.futures import ThreadPoolExecutor

_counter = 0
_pool = ThreadPoolExecutor(2)
logging.basicConfig(format="%(message)s")


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


def _wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def step_by_step(folder, n=3):
    """Continues after an item when the file with the item's number exists."""
    for i in range(n):
        yield i
        _wait_for(os.path.join(folder, str(i)))


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


async def gives_a_generator(n=3):
    return count(n)


def raises(text="no"):
    raise ValueError(text)


def breaks_later():
    yield 1
    raise ValueError("later")


def type_error_inside():
    return len(5)


def leaves():
    sys.exit(3)


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
        _wait_for(path)
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


def forked_child_comes_back():
    if os.fork() == 0:
        return "child"
    return "parent"


def forked_child_stays():
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    os._exit(3)


def leaves_a_child():
    child = subprocess.Popen(["sleep", "600"])
    return child.pid


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


_kept = []


def leaks_files():
    while True:
        _kept.append(os.open(os.devnull, os.O_RDONLY))


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


def holds_the_lock():
    """Matches for longer than any test, and never releases the interpreter's lock."""
    re.match(r"(a*)*b", "a" * 40)


def pid():
    return os.getpid()


def own_processes():
    """Returns the process ids of the keeper and of this process."""
    return [os.getppid(), os.getpid()]


def environment():
    return dict(os.environ)


def pool_of_processes():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.map(abs, [-1])


def _forge(data):
    """Writes to every descriptor that may be the harness's channel, but not to 100. That is the lifeline, which would block."""
    for fd in range(101, 130):
        try:
            os.write(fd, data)
        except OSError:
            pass


def forges_a_header(bytes):
    _forge(b'{"r":"forged","k":"s","n":1,"b":%d}\n' % bytes)
    time.sleep(600)


def forges_items(run_id):
    """Sends more than the run's credit allows."""
    for _ in range(100):
        _forge(b'{"r":"%s","k":"s","n":1,"b":32768}\n' % run_id.encode() + b"x" * 32768)
    time.sleep(600)


def _private():
    return deque
