"""Functions that ignore a cancel, and a function that runs beside them."""

import os
import threading
import time


def blocks():
    """Makes one call into C, during which no exception is raised."""
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
