# PROTOCOL.md, "The end": the kernel ends a replica's process group if the keeper cannot (Linux).
# It sends the signal of F_SETSIG to the group when a file with O_ASYNC changes. The
# process that holds the file may be stopped or ending.
from __future__ import annotations

import fcntl
import os
import signal
import sys

_F_SETSIG = 10  # linux/fcntl.h; the fcntl module has no name for it

# Descriptors above the keeper's other files.
_HIGH = 50


def end_with(lifeline: int, pid: int) -> None:
    """Makes the kernel kill the process group `pid` when the worker or the keeper ends.

    The worker's end closes the lifeline, which also reaches the group of a stopped keeper.
    The keeper's end closes two pipes. PR_SET_PDEATHSIG would end only the program, not the
    processes that it started."""
    if sys.platform != "linux":
        return
    _kill_at_change(lifeline, pid)
    # The kernel sends the signal if it closes the write end first. No document promises the order
    # in which the files of a process close. So the two pipes have their ends in opposite orders.
    read_low, _write_high = os.pipe()
    _kill_at_change(read_low, pid)
    read, _write_low = os.pipe()
    read_high = fcntl.fcntl(read, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(read)
    _kill_at_change(read_high, pid)


def _kill_at_change(fd: int, pid: int) -> None:
    fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(fd, fcntl.F_SETOWN, -pid)
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
