# PROTOCOL.md, "The keeper": finds and ends every process that a replica started, including
# processes that left its process group. The keeper is the reaper and therefore the parent of every
# orphaned process. So a search from the keeper down finds all of them.
from __future__ import annotations

import os
import signal


def below(root: int) -> list[int]:
    """Returns every process below `root` at this moment."""
    found: list[int] = []
    search = [root]
    while search:
        children = _children(search.pop())
        found.extend(children)
        search.extend(children)
    return found


def terminate(pid: int) -> None:
    """Sends SIGTERM to the replica and its process group."""
    try:
        os.killpg(pid, signal.SIGTERM)
    except OSError:
        pass  # it has just ended


def end(pid: int) -> None:
    """Ends the replica `pid`, its process group and every process below the keeper.

    Returns when all of them have ended."""
    _kill(-pid)
    killed: set[int] = set()
    while True:
        found = set(below(os.getpid()))
        for one in found - killed:
            _kill(one)
        killed = found
        try:
            os.waitpid(-1, 0)
            # Reaps several before the next search, because a search for each of hundreds would
            # take seconds.
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has just ended


def _children(pid: int) -> list[int]:
    """Returns the children of a process.

    The system lists a child under the thread that started it."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.extend(map(int, file.read().split()))
    except OSError:
        pass  # the process has just ended, or the system is not Linux and has no such file
    return found
