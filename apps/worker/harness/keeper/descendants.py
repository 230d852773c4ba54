# PROTOCOL.md, "The keeper": all that a replica started, also what has left its process group. As their reaper the keeper is the parent of
# every process whose own has ended, so from the keeper down nobody is missed.
import os
import signal


def below(root):
    """All processes that `root` started and that they started, at this moment."""
    found = []
    search = [root]
    while search:
        children = _children(search.pop())
        found.extend(children)
        search.extend(children)
    return found


def terminate(pid):
    """Asks the replica and its process group to end."""
    try:
        os.killpg(pid, signal.SIGTERM)
    except OSError:
        pass  # it has just ended


def end(pid):
    """Ends the replica `pid`, its process group and everything below the keeper; returns when none of it is left."""
    _kill(-pid)
    killed = set()
    while True:
        found = set(below(os.getpid()))
        for one in found - killed:
            _kill(one)
        killed = found
        try:
            os.waitpid(-1, 0)
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass  # a look for each of hundreds would take seconds
        except ChildProcessError:
            return


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has just ended


def _children(pid):
    """A child belongs to the thread that started it."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found.extend(map(int, file.read().split()))
    except OSError:
        pass  # it has just ended; or there is no such file, elsewhere than on Linux
    return found
