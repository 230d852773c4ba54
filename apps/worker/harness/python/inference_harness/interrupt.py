# PROTOCOL.md, "Cancel": raises Cancelled in the thread that runs a function, and never in another run.
import ctypes
import signal
from threading import main_thread

from .run import Cancelled

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = [ctypes.c_ulong, ctypes.py_object]
_raise_in_thread.restype = ctypes.c_int

_NOTHING = ctypes.py_object()  # a NULL pointer: withdraws an exception that is not raised yet


class ThreadInterrupt:
    """Interrupts functions in threads: an asynchronous exception, raised at the thread's next bytecode."""

    def enter(self, run):
        """Does nothing: the exception is aimed at `run.thread`."""

    def interrupt(self, run):
        _raise_in_thread(run.thread, Cancelled)

    def withdraw(self, run):
        _raise_in_thread(run.thread, _NOTHING)


class SignalInterrupt:
    """Interrupts functions in the main thread: a signal also ends a blocking system call."""

    def __init__(self):
        self._run = None
        self._handler = self._handle
        signal.signal(signal.SIGUSR1, self._handler)

    def enter(self, run):
        """Sets the run that the main thread executes. None: the main thread executes no run."""
        self._run = run
        if signal.getsignal(signal.SIGUSR1) is not self._handler:  # a function installed its own handler, which would block later cancels
            signal.signal(signal.SIGUSR1, self._handler)

    def interrupt(self, _run):
        signal.pthread_kill(main_thread().ident, signal.SIGUSR1)

    def withdraw(self, _run):
        """Does nothing: the handler raises only while the run is armed."""

    def _handle(self, _signal, _frame):
        run = self._run
        if run is not None and run.armed and run.delivered:
            self._run = None  # raise only once
            raise Cancelled()
