"""Functions that go over what app.toml allows."""

import time


def sleeps():
    time.sleep(60)


def sleeps_late():
    yield "one"
    time.sleep(60)


def large(n):
    return "x" * n


def many(n):
    for _ in range(n):
        yield "x" * 100
