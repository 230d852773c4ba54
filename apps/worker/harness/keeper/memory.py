# PROTOCOL.md, "The keeper": the limit of a replica's memory, held by looking. Not RLIMIT_AS or RLIMIT_DATA: those count what is only
# reserved (a thread's stack, a GPU's address space), and one process at a time.
import os

import descendants

# A look at every second at most. Near the limit sooner: what is left would be taken by then at a GiB a second.
LONGEST = 1_000
SHORTEST = 50
BYTES_PER_MS = 2**30 // 1_000

KIB = 1024


class Memory:
    def __init__(self, limit):
        self._limit = limit
        # Bytes, at the last look.
        self.used = 0

    def look(self, pid):
        """Milliseconds until the next look, or None when the replica `pid` and what it started hold more than they may."""
        processes = [pid, *descendants.below(os.getpid())]
        used = sum(map(_held, set(processes)))
        if used > self._limit:  # memory that a fork shares was counted for each
            used = sum(map(_share, set(processes)))
        self.used = used
        if used > self._limit:
            return None
        return max(SHORTEST, min(LONGEST, (self._limit - used) // BYTES_PER_MS))


def _held(pid):
    """Bytes of a process's own that cannot be read again from a file: not its code, nor files it has mapped."""
    return _sum(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:")) or 0


def _share(pid):
    """The same, where what several processes share is shared out among them."""
    used = _sum(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
    return _held(pid) if used is None else used


def _sum(path, names):
    """Bytes; None where the system does not tell."""
    used = None
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(names):
                    used = (used or 0) + int(line.split()[1]) * KIB
    except OSError:
        return None  # it has just ended, or does not let itself be looked at
    return used
