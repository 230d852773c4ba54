"""Functions that exhaust or attack the process of an app."""

import os
import re
import subprocess
import time

from waiting import steps

_kept = []


def add(a: int, b: int = 2):
    return a + b


def step_by_step(folder, n=3):
    yield from steps(folder, n)


def leaves_a_child():
    child = subprocess.Popen(["sleep", "600"])
    return child.pid


def leaks_files():
    while True:
        _kept.append(os.open(os.devnull, os.O_RDONLY))


def never_returns():
    """Matches for longer than any test, and never releases the interpreter's lock."""
    re.match(r"(a*)*b", "a" * 40)


def pid():
    return os.getpid()


def own_processes():
    """Returns the process ids of the keeper and of this process."""
    return [os.getppid(), os.getpid()]


def _forge(data):
    """Writes to every descriptor that may be the harness's channel."""
    for fd in range(100, 130):
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
