"""Functions that go over their time limit and do not obey."""

import os
import threading
import time


def refuses():
    """Catches what should end it."""
    while True:
        try:
            time.sleep(600)
        except BaseException:
            print("refused")


def blocks():
    """In C, where nothing reaches it."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=600)


def pid():
    return os.getpid()
