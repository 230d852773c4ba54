"""With a time limit that runs reach."""

import os
import re


def pid():
    return os.getpid()


def holds_the_lock():
    """Matches for longer than anyone waits, without giving the interpreter's lock away."""
    yield os.getpid()
    re.match(r"(a*)*b", "a" * 40)
