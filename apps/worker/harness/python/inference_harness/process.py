# PROTOCOL.md, "The process": its file descriptors, its signals, and how it ends with its worker.
import errno
import fcntl
import os
import signal
import sys

CHANNEL_FD = 3
LIFELINE_FD = 4
# Out of the way of fd numbers that an app's libraries take for granted.
LOWEST_FD = 100

_F_SETSIG = 10  # linux/fcntl.h; the fcntl module does not name it


def take_channel():
    """Moves fd 3 out of reach of the app and of its children; returns the new descriptor."""
    fd = fcntl.fcntl(CHANNEL_FD, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
    os.close(CHANNEL_FD)
    return fd


def hold_lifeline():
    """Lets the kernel kill this whole process group when the worker's end of fd 4 closes: should the keeper have been killed, which ends what
    has left the group as well.

    Neither a thread that reads (it needs the interpreter's lock, which C code may hold) nor PR_SET_PDEATHSIG (this process only, not what
    it started) would do that. Without F_SETSIG (not Linux) the end of fd 3 is what ends the process."""
    try:
        fd = fcntl.fcntl(LIFELINE_FD, fcntl.F_DUPFD_CLOEXEC, LOWEST_FD)
        os.close(LIFELINE_FD)
        if sys.platform == "linux" and os.getpgrp() == os.getpid():
            fcntl.fcntl(fd, _F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    except OSError:
        pass  # started by hand, without a lifeline


def end_group():
    """The worker has gone: ends this process and what it started, at once."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


def settle():
    """A stop signal meant for a whole process group is the worker's to answer: it drains first."""
    # Handlers and not SIG_IGN, which the app's own children would inherit.
    signal.signal(signal.SIGTERM, _leave_to_worker)
    signal.signal(signal.SIGINT, _leave_to_worker)


def has_no_files_left():
    """Whether its functions have left so many files open that no more can be opened."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False


def _leave_to_worker(_signal, _frame):
    pass


def on_fork(channel, restore):
    """Cuts a forked child off from the protocol; `restore` gives it back the plain interpreter."""

    def after_in_child():
        fd, channel.fd = channel.fd, None
        channel.queue.clear()
        if fd is not None:
            os.close(fd)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        restore()

    os.register_at_fork(after_in_child=after_in_child)
