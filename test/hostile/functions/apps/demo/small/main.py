"""This app may hold 128 MiB of memory."""

import os
import subprocess
import sys
import time

MIB = 2**20


def grows(mebibytes, seconds):
    """Allocates one MiB at a time, then holds the memory for the given seconds."""
    held = []
    for _ in range(mebibytes):
        held.append(b"x" * MIB)
    time.sleep(seconds)
    return len(held)


def grows_below(mebibytes, seconds):
    """Starts a child in a new session that allocates the memory."""
    code = f"held = b'x' * {mebibytes * MIB}\nimport time\ntime.sleep({seconds})"
    yield subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid
    time.sleep(seconds)


def waits():
    yield os.getpid()
    time.sleep(600)


def pid():
    return os.getpid()
