# PROTOCOL.md, "The process": its file descriptors, its signals, and its end when the worker ends.
from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
from typing import Callable, NoReturn

from .channel import Channel

CHANNEL_FD = 3
LIFELINE_FD = 4
# Higher than the fd numbers that an app's libraries may expect to be free.
LOWEST_FD = 100

_F_SETSIG = 10  # linux/fcntl.h; the fcntl module has no name for it


def take_channel() -> int:
    """Moves fd 3 out of reach of the app and its children. Returns the new descriptor."""
    fd = fcntl.fcntl(CHANNEL_FD, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
    os.close(CHANNEL_FD)
    return fd


def hold_lifeline() -> None:
    """Makes the kernel kill this process group when the worker's end of fd 4 closes.

    This matters if the keeper was killed. A keeper would also end the processes that left the
    group. Two other
    ways do not work. A thread that reads fd 4 needs the interpreter's lock, which C code may hold.
    PR_SET_PDEATHSIG ends only this process, not the processes that it started.
    Without F_SETSIG (not Linux), the end of fd 3 ends the process."""
    try:
        fd = fcntl.fcntl(LIFELINE_FD, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
        os.close(LIFELINE_FD)
        if sys.platform == "linux" and os.getpgrp() == os.getpid():
            fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    except OSError:
        pass  # started by hand, without a lifeline


def end_group() -> NoReturn:
    """Ends this process and its process group: the worker's end of the channel is closed."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def settle() -> None:
    """Ignores SIGTERM and SIGINT.

    A signal to a whole process group also reaches the worker, which drains its replicas first."""
    # Uses handlers, because the app's children would inherit SIG_IGN.
    signal.signal(signal.SIGTERM, _leave_to_worker)
    signal.signal(signal.SIGINT, _leave_to_worker)


def has_no_files_left() -> bool:
    """Returns whether the functions left so many files open that no other can be opened."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False


def _leave_to_worker(_signal: int, _frame: object) -> None:
    pass


def on_fork(channel: Channel, restore: Callable[[], None]) -> None:
    """Cuts a forked child off from the protocol.

    `restore` restores the plain interpreter in the child."""

    def after_in_child() -> None:
        fd, channel.fd = channel.fd, None
        channel.queue.clear()
        if fd is not None:
            os.close(fd)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        restore()

    os.register_at_fork(after_in_child=after_in_child)
