"""One call at a time, with little patience."""

import time


def sleeps(seconds):
    time.sleep(seconds)
    return seconds
