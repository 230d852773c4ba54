# PROTOCOL.md, "Bounds": limits a replica as far as the system lets an unprivileged process limit
# itself.
from __future__ import annotations

import os
import resource
import signal
import sys

# Open files and connections of one process. A process may raise the limit (`resource.setrlimit`)
# up to the system's limit.
OPEN_FILES = 8_192

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

# Capabilities that let root read the memory and environment of any process: CAP_SYS_PTRACE,
# CAP_SYS_ADMIN, CAP_PERFMON.
_RIGHTS_TO_LOOK = (19, 21, 38)

# linux/landlock.h; the numbers are the same on every architecture.
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_SCOPE_SIGNAL = 2
_ABI_WITH_SCOPES = 6

# None where the system's library cannot be called.
_libc: ctypes.CDLL | None = None
try:
    import ctypes

    if sys.platform == "linux":
        _libc = ctypes.CDLL(None, use_errno=True)
except ImportError:
    pass


def prepare() -> None:
    """Prepares the keeper: it becomes the parent of every orphaned process below it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def contained() -> bool:
    """Returns whether the system can confine a replica to its own processes.

    Confined are its signals, and its access to memory and environments."""
    if _libc is None:
        return False
    version: int = _libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    return version >= _ABI_WITH_SCOPES


def enter() -> None:
    """Limits the replica's process before its program starts.

    Every process that the program starts inherits the limits."""
    # Python ignores these signals, and a program would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _limit_open_files()
    if _libc is None:
        return
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    _be_first_to_go()
    if contained():
        _contain(_libc)


def _limit_open_files() -> None:
    """Lowers the limit of open files.

    The worker's own limit may be a million, and each open file costs the system up to some kB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft > OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))


def _be_first_to_go() -> None:
    """Makes the system end a function's process first when the machine is out of memory.

    Otherwise, it could end the worker or Redis."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # the file does not exist or is not writable here


def _contain(libc: ctypes.CDLL) -> None:
    """Enters a Landlock domain.

    The process cannot signal processes outside, and cannot read their memory or environment."""
    import ctypes

    scopes = (ctypes.c_uint64 * 3)(0, 0, _SCOPE_SIGNAL)
    ruleset: int = libc.syscall(
        _LANDLOCK_CREATE_RULESET, ctypes.byref(scopes), ctypes.sizeof(scopes), 0
    )
    if ruleset < 0:
        return
    for right in _RIGHTS_TO_LOOK:  # Landlock alone does not stop root
        libc.prctl(_PR_CAPBSET_DROP, right, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
