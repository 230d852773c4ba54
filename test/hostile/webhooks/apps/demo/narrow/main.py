"""One call at a time; who waits has little patience."""

import time


def sleeps(seconds):
    time.sleep(seconds)
    return seconds
