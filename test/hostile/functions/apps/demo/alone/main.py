"""Runs execute one at a time in the main thread, so a function can change signal handlers."""

import os
import signal
import sys
import time


def deaf():
    """Ignores every signal that a process can ignore, and catches every exception."""
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    yield os.getpid()
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass


def sets_an_alarm():
    signal.alarm(1)
    signal.pause()


def leaves_signals_changed():
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def sleeps():
    yield "asleep"
    time.sleep(600)


def pid():
    return os.getpid()


def traces():
    def tracer(frame, event, argument):
        raise RuntimeError("traced")

    sys.settrace(tracer)


def is_traced():
    return sys.gettrace() is not None
