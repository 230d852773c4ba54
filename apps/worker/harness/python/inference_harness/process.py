# PROTOCOL.md, "The process": its file descriptors, its signals, and its end when the worker ends.
from __future__ import annotations

import errno
import fcntl
import os
import signal
from typing import Callable, NoReturn

from .channel import Channel

CHANNEL_FD = 3
# Higher than the fd numbers that an app's libraries may expect to be free.
LOWEST_FD = 100


def take_channel() -> int:
    """Moves fd 3 out of reach of the app and its children. Returns the new descriptor."""
    fd = fcntl.fcntl(CHANNEL_FD, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
    os.close(CHANNEL_FD)
    return fd


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
