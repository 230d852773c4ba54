# PROTOCOL.md, "Cancel": in a function's thread, time.sleep also waits for the run's cancel, because an asynchronous exception does not
# interrupt a sleeping thread.
import threading
import time
from threading import Lock

from .run import Cancelled

real_sleep = time.sleep

# `run` is the run whose function this thread executes.
here = threading.local()


def sleep(seconds):
    run = getattr(here, "run", None)
    if run is None or run.delivered or not isinstance(seconds, (int, float)) or not 0 < seconds <= threading.TIMEOUT_MAX:
        return real_sleep(seconds)
    sleeper = Lock()
    sleeper.acquire()
    with run.lock:
        if not run.armed or run.delivered:
            sleeper = None
        else:
            run.sleeper = sleeper
    if sleeper is None:
        return real_sleep(seconds)
    try:
        woken = sleeper.acquire(timeout=seconds)
    finally:
        with run.lock:
            run.sleeper = None
            # A cancel may have come after the end of the wait. The cancel released the lock of a sleeping thread and raised nothing.
            missed = sleeper.acquire(False)
    if woken or missed:
        raise Cancelled()


sleep.__doc__ = time.sleep.__doc__


def replace():
    time.sleep = sleep


def restore():
    time.sleep = real_sleep
