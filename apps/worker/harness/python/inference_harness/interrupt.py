# PROTOCOL.md, `cancel`: how Cancelled gets into the thread that runs a function, and never into another run.
import ctypes
import signal
from threading import main_thread

from .run import Cancelled

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = [ctypes.c_ulong, ctypes.py_object]
_raise_in_thread.restype = ctypes.c_int

_NOTHING = ctypes.py_object()  # a NULL pointer: takes back what has not been raised yet


class ThreadInterrupt:
    """For functions in threads: an asynchronous exception, raised at the thread's next bytecode."""

    def enter(self, run):
        """Nothing to do: the exception is aimed at `run.thread`."""

    def interrupt(self, run):
        _raise_in_thread(run.thread, Cancelled)

    def withdraw(self, run):
        _raise_in_thread(run.thread, _NOTHING)


class SignalInterrupt:
    """For functions in the main thread: a signal, which ends a blocking system call too."""

    def __init__(self):
        self._run = None
        self._handler = self._handle
        signal.signal(signal.SIGUSR1, self._handler)

    def enter(self, run):
        """`run`, or None, is what the main thread now works for."""
        self._run = run
        if signal.getsignal(signal.SIGUSR1) is not self._handler:  # a function has set another: no later run could be cancelled
            signal.signal(signal.SIGUSR1, self._handler)

    def interrupt(self, _run):
        signal.pthread_kill(main_thread().ident, signal.SIGUSR1)

    def withdraw(self, _run):
        """Nothing to do: the handler raises only while the run is armed."""

    def _handle(self, _signal, _frame):
        run = self._run
        if run is not None and run.armed and run.delivered:
            self._run = None  # once
            raise Cancelled()
