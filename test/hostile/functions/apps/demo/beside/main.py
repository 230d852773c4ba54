"""The tests call this app while functions of another app misbehave."""

import time


def value(n):
    return n


def ticks(n):
    for i in range(n):
        yield i
        time.sleep(0.05)


def pid():
    import os

    return os.getpid()
