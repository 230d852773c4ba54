"""An app that runs one call at a time and whose queued calls expire soon."""

import time


def sleeps(seconds):
    time.sleep(seconds)
    return seconds
