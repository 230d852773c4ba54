"""Calls that may not take long."""

import time


def sleeps(seconds):
    time.sleep(seconds)
    return seconds
