"""An app with a short time limit."""

import time


def sleeps(seconds):
    time.sleep(seconds)
    return seconds
