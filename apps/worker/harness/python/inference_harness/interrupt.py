# PROTOCOL.md, "Cancel": the ways to raise Cancelled in a function, one for each place where
# functions run. `cancel.py` decides when.
from __future__ import annotations

import asyncio
import ctypes
import signal
import threading
from typing import Any

from .cancel import Cancellation, Cancelled
from .here import here

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = [ctypes.c_ulong, ctypes.py_object]
_raise_in_thread.restype = ctypes.c_int

_NOTHING = ctypes.py_object()  # a NULL pointer: withdraws an exception that is not raised yet


class ThreadInterrupt:
    """Interrupts functions of the creating thread: an exception, raised at the next bytecode."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def prepare(self) -> None:
        """Does nothing: a function cannot disable asynchronous exceptions."""

    def send(self) -> None:
        """Makes Python raise Cancelled in the thread."""
        _raise_in_thread(self._thread, Cancelled)

    def withdraw(self) -> None:
        """Removes an exception that Python has not raised yet."""
        _raise_in_thread(self._thread, _NOTHING)


class SignalInterrupt(ThreadInterrupt):
    """Interrupts functions in the main thread: a signal also ends a blocking system call."""

    def __init__(self) -> None:
        super().__init__()
        self._handler = self._handle
        signal.signal(signal.SIGUSR1, self._handler)

    def prepare(self) -> None:
        """Installs the handler again if a function replaced it."""
        if signal.getsignal(signal.SIGUSR1) is not self._handler:
            signal.signal(signal.SIGUSR1, self._handler)

    def send(self) -> None:
        """Sends the signal to the main thread."""
        signal.pthread_kill(self._thread, signal.SIGUSR1)

    def withdraw(self) -> None:
        """Does nothing: the handler raises only for a run that is being interrupted."""

    def _handle(self, _signal: int, _frame: object) -> None:
        run = here.run
        if run is not None and run.cancellation.deliver():
            raise Cancelled()


class TaskInterrupt:
    """Interrupts a function in a task of an event loop: `task.cancel()`, in the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cancellation: Cancellation) -> None:
        self._loop = loop
        self._cancellation = cancellation
        self.task: asyncio.Task[Any] | None = None

    def send(self) -> None:
        """Cancels the task in the loop's next turn."""
        self._loop.call_soon_threadsafe(self._deliver)

    def withdraw(self) -> None:
        """Does nothing: the loop cancels only the task of a run that is being interrupted."""

    def _deliver(self) -> None:
        if self.task is not None and self._cancellation.deliver():
            self.task.cancel()
