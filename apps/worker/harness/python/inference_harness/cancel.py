# PROTOCOL.md, "Cancel": the state of a run's cancel, as one table. Threads and tasks use the same
# table. It keeps three promises: Cancelled is raised at most once, only in the function of its
# run, and never in code of the harness that sends items or ends the run.
from __future__ import annotations

from threading import Lock
from typing import Literal, Protocol


class Cancelled(BaseException):
    """Ends a cancelled function. A BaseException is not caught by `except Exception`."""


# - held: the harness's code has the run, before the call and whenever items are sent.
# - running: the function's code runs.
# - sleeping: the function's code waits in `time.sleep`.
# - asked: a cancel came while the harness's code had the run, or the cancelled function has ended.
# - interrupting: an interrupt is on its way to the function's code.
# - unwinding: the function's code has the interrupt, and its `finally` blocks run undisturbed.
# - ended: the terminal message is decided.
State = Literal["held", "running", "sleeping", "asked", "interrupting", "unwinding", "ended"]

# enter, leave: the function's code begins or continues; the harness's code takes over.
# sleep, wake: a sleep begins; the sleep is over.
# cancel: the worker's message. deliver: the interrupt reaches the function's code.
# end: the run ends.
Event = Literal["enter", "leave", "sleep", "wake", "cancel", "deliver", "end"]

# interrupt: raise Cancelled in the function's code. withdraw: take back what has not been raised.
# rouse: end the sleep. raise: the caller of the event raises Cancelled itself.
Action = Literal["interrupt", "withdraw", "rouse", "raise", None]

# An event that a state's row does not have changes nothing.
TABLE: dict[State, dict[Event, tuple[State, Action]]] = {
    "held": {
        "enter": ("running", None),
        "cancel": ("asked", None),
        "end": ("ended", None),
    },
    "running": {
        "leave": ("held", None),
        "sleep": ("sleeping", None),
        "cancel": ("interrupting", "interrupt"),
    },
    "sleeping": {
        "wake": ("running", None),
        "leave": ("held", None),
        "cancel": ("unwinding", "rouse"),
    },
    "asked": {
        "enter": ("asked", "raise"),
        "end": ("ended", None),
    },
    "interrupting": {
        "deliver": ("unwinding", "raise"),
        "leave": ("asked", "withdraw"),
    },
    "unwinding": {
        "wake": ("unwinding", "raise"),
        "leave": ("asked", None),
    },
    "ended": {},
}


def _column(event: Event) -> dict[State, tuple[State, Action]]:
    """Returns what an event does in each state."""
    return {state: row.get(event, (state, None)) for state, row in TABLE.items()}


# The table by event, because each method handles one event. Every call of a function passes three.
_ENTER = _column("enter")
_LEAVE = _column("leave")
_SLEEP = _column("sleep")
_WAKE = _column("wake")
_CANCEL = _column("cancel")
_DELIVER = _column("deliver")
_END = _column("end")

_CANCELLED = frozenset(("asked", "interrupting", "unwinding"))


class Interrupt(Protocol):
    """Raises Cancelled in the function's code of one thread or task."""

    def send(self) -> None:
        """Starts the interrupt. Any thread may call it."""
        ...

    def withdraw(self) -> None:
        """Takes back an interrupt that has not reached the function's code."""
        ...


class Cancellation:
    """The cancel of one run: its state, and the actions that the table requires."""

    __slots__ = ("_lock", "_sleeper", "interrupt", "state")

    def __init__(self) -> None:
        self.state: State = "held"
        # Who interrupts the function's code. Set before `enter`, while the run is held.
        self.interrupt: Interrupt | None = None
        # Locked while the function sleeps.
        self._sleeper: Lock | None = None
        # An interrupt is sent while the lock is held. So `leave` returns before or after it, never
        # in between.
        self._lock = Lock()

    @property
    def requested(self) -> bool:
        """Whether a cancel has come before the end of the run."""
        return self.state in _CANCELLED

    def cancel(self) -> None:
        """Takes the worker's message. Any thread may call it."""
        with self._lock:
            self.state, action = _CANCEL[self.state]
            if action == "interrupt" and self.interrupt is not None:
                self.interrupt.send()
            elif action == "rouse" and self._sleeper is not None:
                self._sleeper.release()

    def enter(self) -> None:
        """Marks that the function's code begins or continues.

        Raises Cancelled if a cancel has come."""
        with self._lock:
            self.state, action = _ENTER[self.state]
            if action == "raise":
                raise Cancelled()

    def leave(self) -> None:
        """Marks that the harness's code takes over. No interrupt comes after the return.

        The interrupt itself may end this method with Cancelled. Then the caller calls it again."""
        with self._lock:
            self.state, action = _LEAVE[self.state]
            if action == "withdraw" and self.interrupt is not None:
                self.interrupt.withdraw()

    def begin_sleep(self, sleeper: Lock) -> bool:
        """Makes a cancel release `sleeper`. Returns False if no cancel may end this sleep."""
        with self._lock:
            self.state, _ = _SLEEP[self.state]
            if self.state != "sleeping":
                return False
            self._sleeper = sleeper
            return True

    def end_sleep(self) -> None:
        """Marks that the sleep is over. Raises Cancelled if a cancel came during the sleep."""
        with self._lock:
            self._sleeper = None
            self.state, action = _WAKE[self.state]
            if action == "raise":
                raise Cancelled()

    def deliver(self) -> bool:
        """Returns whether the caller, in the function's thread or loop, has to raise the interrupt.

        Takes no lock, because a signal handler calls it, also while this thread holds the lock.
        Only the calling thread leaves the state `interrupting`, so the state cannot change
        meanwhile."""
        after, action = _DELIVER[self.state]
        if action != "raise":
            return False
        self.state = after
        return True

    def end(self) -> bool:
        """Ends the run for cancels. Returns whether a cancel came before.

        Takes no lock: a cancel at the same moment counts as later.
        """
        requested = self.state in _CANCELLED
        self.state, _ = _END[self.state]
        self.interrupt = None  # a task's interrupt refers to this object
        return requested
