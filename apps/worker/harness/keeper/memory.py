# PROTOCOL.md, "Memory": enforces a replica's memory limit by measuring. RLIMIT_AS and RLIMIT_DATA
# do not fit: they apply to one process, and they count reserved memory too (a thread's stack, a
# GPU's address space).
from __future__ import annotations

import os

import descendants

# ms between measurements. Near the limit the time is shorter: the time in which a GiB a second
# would fill the remaining memory.
LONGEST = 1_000
SHORTEST = 50
BYTES_PER_MS = 2**30 // 1_000

KIB = 1024


class Memory:
    """Measures the memory of a replica and its descendants."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # Bytes, at the last measurement.
        self.used = 0

    def look(self, pid: int) -> int | None:
        """Returns the ms until the next measurement, or None if the memory exceeds the limit.

        The memory is that of the replica `pid` and its descendants."""
        processes = [pid, *descendants.below(os.getpid())]
        used = sum(map(_held, set(processes)))
        # Memory that forked processes share was counted once per process.
        if used > self._limit:
            used = sum(map(_share, set(processes)))
        self.used = used
        if used > self._limit:
            return None
        return max(SHORTEST, min(LONGEST, (self._limit - used) // BYTES_PER_MS))


def _held(pid: int) -> int:
    """Returns the bytes of a process that cannot be read again from a file.

    Its code and mapped files do not count."""
    return _sum(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:", "VmSwap:")) or 0


def _share(pid: int) -> int:
    """Returns the same bytes, with shared memory divided among the processes that share it."""
    used = _sum(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:"))
    return _held(pid) if used is None else used


def _sum(path: str, names: tuple[str, ...]) -> int | None:
    """Returns the sum in bytes, or None if the system does not report it."""
    used: int | None = None
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(names):
                    used = (used or 0) + int(line.split()[1]) * KIB
    except OSError:
        return None  # the process has just ended, or its files are not readable
    return used
