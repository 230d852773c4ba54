# PROTOCOL.md, "The keeper": starts a replica within bounds, and ends every process that the
# replica started when the replica or the worker ends.
from __future__ import annotations

import json
import os
import select
import signal
import sys

import bounds
import descendants
import group_end
from memory import Memory

CHANNEL_FD = 3
LIFELINE_FD = 4
PREFIX = "KEPT_"


class Keeper:
    """Watches one replica, its memory and the worker."""

    def __init__(self, pid: int, limit: int, wakeups: int) -> None:
        self._pid = pid
        self._memory = Memory(limit) if limit > 0 else None
        self._wakeups = wakeups

    def keep(self) -> int:
        """Waits until the replica has ended or must end. Returns its status, as of `waitpid`."""
        poll = select.poll()
        poll.register(LIFELINE_FD, select.POLLIN)
        poll.register(self._wakeups, select.POLLIN)
        wait: int | None = None
        while True:
            if self._memory is not None:
                wait = self._memory.look(self._pid)
                if wait is None:
                    send({"t": "out_of_memory", "bytes": self._memory.used})
                    return signal.SIGKILL
            for fd, _event in poll.poll(wait):
                if fd == LIFELINE_FD:
                    # The worker never writes to the lifeline, so its end has closed.
                    return signal.SIGKILL
                os.read(fd, 512)
            status = self._reap()
            if status is not None:
                return status

    def _reap(self) -> int | None:
        """Reaps every ended process. Returns the replica's status if the replica has ended.

        Nothing needs the status of other processes."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == self._pid:
                return status
            if pid == 0:
                return None


def send(message: dict[str, object]) -> None:
    """Sends a message to the worker."""
    try:
        os.write(LIFELINE_FD, json.dumps(message).encode() + b"\n")
    except OSError:
        pass  # the worker's end is closed


def environment() -> dict[str, str]:
    """Returns the program's environment.

    The names arrive with a prefix, so that no variable applies to the keeper."""
    return {
        name[len(PREFIX) :]: value for name, value in os.environ.items() if name.startswith(PREFIX)
    }


def start(command: list[str]) -> int:
    """Starts the replica as the leader of a new process group. Returns its process id."""
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        os.setpgid(0, 0)
        os.close(LIFELINE_FD)  # otherwise, the program could write messages of the keeper
        bounds.enter()
        os.execve(command[0], command, environment())
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def leave(status: int) -> None:
    """Ends the keeper with the exit code or signal of the replica."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def main() -> None:
    """Runs the keeper: memory limit, program and arguments are in `sys.argv`."""
    limit, command = int(sys.argv[1]), sys.argv[2:]
    wakeups, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    bounds.prepare()
    pid = start(command)
    # The worker sends SIGTERM to end a replica. The signal is meant for the replica's process
    # group, not for the keeper.
    signal.signal(signal.SIGTERM, lambda _signal, _frame: descendants.terminate(pid))
    signal.signal(signal.SIGINT, lambda _signal, _frame: None)
    os.close(CHANNEL_FD)
    group_end.end_with(LIFELINE_FD, pid)
    send({"t": "kept", "contained": bounds.contained()})
    status = Keeper(pid, limit, wakeups).keep()
    descendants.end(pid)
    leave(status)


main()
