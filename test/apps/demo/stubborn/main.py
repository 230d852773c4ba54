"""Functions that are cancelled and do not obey, and one beside them."""

import os
import threading
import time


def blocks():
    """One call into C that no exception reaches."""
    print("begun")
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=600)


def refuses():
    print("begun")
    while True:
        try:
            time.sleep(600)
        except BaseException:
            print("refused")


def waits(gate):
    print("begun")
    while not os.path.exists(gate):
        time.sleep(0.01)
    return "waited"


def pid():
    return os.getpid()
