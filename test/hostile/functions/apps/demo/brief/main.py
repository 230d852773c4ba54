"""An app whose runs exceed their time limit."""

import os
import re


def pid():
    return os.getpid()


def holds_the_lock():
    """Matches for longer than any timeout of the tests, and never releases the interpreter's lock."""
    yield os.getpid()
    re.match(r"(a*)*b", "a" * 40)
