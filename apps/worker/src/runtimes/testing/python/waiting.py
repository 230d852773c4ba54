"""Waits for files of the tests. The functions of other modules are not public, so the test apps wrap them."""

import os
import time


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)


def steps(folder, n):
    """Continues after an item when the file with the item's number exists."""
    for i in range(n):
        yield i
        wait_for(os.path.join(folder, str(i)))
