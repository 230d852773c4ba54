"""A hostile app for the tests of the keeper: processes that leave their group, allocate memory, and attack other processes."""

import ctypes
import os
import signal
import subprocess
import sys
import time

MIB = 2**20


def pid():
    return os.getpid()


def leaves_a_daemon():
    """Leaves an orphan in a separate session, with its own environment. The orphan ignores SIGTERM and holds the pipes."""
    code = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\ntime.sleep(600)"
    script = f"import subprocess\nprint(subprocess.Popen([{sys.executable!r}, '-c', {code!r}], env={{}}, start_new_session=True, stdout=1).pid)"
    middle = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    # The parent and the orphan each print the orphan's process id. Then the orphan ignores SIGTERM and prints nothing further.
    words = [int(middle.stdout.readline()) for _ in range(2)]
    middle.wait()
    return words[0]


def leaves_a_daemon_and_exits():
    yield leaves_a_daemon()
    time.sleep(0.1)
    os._exit(3)


def holds(mebibytes, seconds):
    held = b"x" * (mebibytes * MIB)
    yield len(held)
    time.sleep(seconds)
    yield "whole"


def holds_in_a_child(mebibytes):
    """Allocates memory in a child. The child's memory counts for the replica."""
    code = f"held = b'x' * {mebibytes * MIB}\nimport time\ntime.sleep(60)"
    yield subprocess.Popen([sys.executable, "-c", code]).pid
    time.sleep(60)


def shares(mebibytes, children):
    """Shares memory with forked children. The memory exists once."""
    held = b"x" * (mebibytes * MIB)
    pids = []
    for _ in range(children):
        child = os.fork()
        if child == 0:
            signal.pause()
        pids.append(child)
    time.sleep(1.5)  # longer than the interval of measurements
    for child in pids:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return len(held) // MIB


def ancestors():
    """Returns the ancestors of the function's process: the keeper, and the worker above it."""
    found, at = [], os.getpid()
    for _ in range(2):
        with open(f"/proc/{at}/status") as file:
            at = next(int(line.split()[1]) for line in file if line.startswith("PPid:"))
        found.append(at)
    return found


def signals(target):
    try:
        os.kill(target, 0)
    except OSError as error:
        return type(error).__name__
    return "allowed"


def reads(path):
    try:
        with open(path, "rb") as file:
            return len(file.read(64 * 1024)) > 0
    except OSError as error:
        return type(error).__name__


def peeks(target):
    """Attaches to another process by the system call that debuggers use."""
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.ptrace(16, target, 0, 0)  # PTRACE_ATTACH
    return failed


def limits():
    import resource

    return {"files": resource.getrlimit(resource.RLIMIT_NOFILE)[0], "core": resource.getrlimit(resource.RLIMIT_CORE)[0]}


def environment():
    return dict(os.environ)


def oom_score_adj():
    with open("/proc/self/oom_score_adj") as file:
        return int(file.read())
