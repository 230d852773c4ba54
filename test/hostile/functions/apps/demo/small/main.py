"""May hold 128 MiB."""

import os
import subprocess
import sys
import time

MIB = 2**20


def grows(mebibytes):
    """A MiB at a time."""
    held = []
    for _ in range(mebibytes):
        held.append(b"x" * MIB)
    time.sleep(2)  # longer than from one look to the next
    return len(held)


def grows_below(mebibytes):
    """A child does, in a session of its own."""
    code = f"held = b'x' * {mebibytes * MIB}\nimport time\ntime.sleep(600)"
    yield subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid
    time.sleep(600)


def waits():
    yield os.getpid()
    time.sleep(600)


def pid():
    return os.getpid()
