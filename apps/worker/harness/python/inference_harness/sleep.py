# PROTOCOL.md, "Cancel": in a function's thread, time.sleep also waits for the run's cancel,
# because an asynchronous exception does not interrupt a sleeping thread.
import threading
import time

from .here import here

real_sleep = time.sleep


def sleep(seconds: float) -> None:  # noqa: D103
    run = here.run
    if run is None or not _can_wait(seconds):
        return real_sleep(seconds)
    sleeper = threading.Lock()
    sleeper.acquire()
    if not run.cancellation.begin_sleep(sleeper):
        return real_sleep(seconds)
    try:
        sleeper.acquire(timeout=seconds)
    finally:
        run.cancellation.end_sleep()


def _can_wait(seconds: object) -> bool:
    """Whether a lock can wait for so long. The real function reports the other values."""
    return isinstance(seconds, (int, float)) and 0 < seconds <= threading.TIMEOUT_MAX


sleep.__doc__ = time.sleep.__doc__


def replace() -> None:
    """Replaces time.sleep."""
    time.sleep = sleep


def restore() -> None:
    """Restores time.sleep in a forked child."""
    time.sleep = real_sleep
