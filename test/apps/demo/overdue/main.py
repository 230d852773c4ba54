"""Functions that exceed their time limit and ignore the interrupt."""

import os
import threading
import time


def refuses():
    """Catches the exception that interrupts it."""
    while True:
        try:
            time.sleep(600)
        except BaseException:
            print("refused")


def blocks():
    """Blocks in C code, where no exception is raised."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(timeout=600)


def pid():
    return os.getpid()
