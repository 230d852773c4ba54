# PROTOCOL.md, "Life of a replica": hello, init, ready, runs, drain, bye.
import os
import platform
import sys
import threading
from time import perf_counter

from . import logs, process, sleep
from .app import App
from .calls import Calls
from .channel import Channel
from .failures import formatted, message_of
from .frames import Reader, frame
from .interrupt import SignalInterrupt, ThreadInterrupt
from .run import Limits, Run
from .single import Single
from .tasks import Tasks
from .threads import Threads
from .ticker import Ticker

PROTOCOL = 1


class Harness:
    def __init__(self, fd):
        self.channel = Channel(fd)
        self.reader = Reader(fd)
        self.runs = {}
        self.ticker = Ticker(self.channel, self.runs)
        self.calls = None
        self.stop = None
        self._limits = None
        self._draining = False

    def serve(self):
        """Serves the worker until the process has been drained."""
        channel = self.channel
        channel.send(frame({"t": "hello", "proto": PROTOCOL, "pid": os.getpid(), "python": platform.python_version()}))
        message = self.reader.read()
        if message is None:
            return
        init = message[0]
        self._limits = Limits(init["max_item_bytes"], init["max_output_bytes"], init["max_log_bytes"])
        process.on_fork(channel, _restore)
        logs.replace(channel, self.ticker, self._limits.log)
        app = App(init["app"], init["entry"], init["debug"])
        if init["concurrency"] == 1:
            serve = self._in_main_thread(app)
        else:
            serve = self._in_threads(app)
        if self._start(app, init):
            serve()
            self._run_hook(app, "teardown")
            self.ticker.finish_lines()
            channel.finish(frame({"t": "bye"}))

    def _in_main_thread(self, app):
        interrupt = SignalInterrupt()
        self.calls = Calls(app, self.channel, self.ticker, interrupt, self._ended)
        single = Single(self.reader, self.channel, self._handle, self.calls.call)
        self.calls.tasks = Tasks(self.channel, self.ticker, self.calls, single.submit)
        self.stop = single.stop
        threading.Thread(target=self.ticker.serve, daemon=True).start()
        single.start()
        return single.serve

    def _in_threads(self, app):
        sleep.replace()
        self.calls = Calls(app, self.channel, self.ticker, ThreadInterrupt(), self._ended)
        threads = Threads(self.reader, self.channel, self.ticker, self._handle, self.calls.call)
        self.calls.tasks = Tasks(self.channel, self.ticker, self.calls, threads.submit)
        stopped = threading.Event()
        self.stop = stopped.set
        threading.Thread(target=self.ticker.serve, daemon=True).start()
        threads.start()
        return stopped.wait

    def _start(self, app, init):
        """Imports the app and sets it up. Returns False if that failed."""
        started = perf_counter()
        stage = "load"
        try:
            app.load()
            stage = "setup"
            self._await_hook(app, "setup")
        except BaseException as error:
            text = formatted(error)
            sys.stderr.write(text)
            self.ticker.finish_lines()
            fields = {"type": type(error).__name__, "message": message_of(error), "traceback": text}
            self.channel.finish(frame({"t": "init_error", "stage": stage, **fields}))
            return False
        app.keep_context()
        elapsed = round((perf_counter() - started) * 1000, 3)
        self.channel.send(frame({"t": "ready", "setup_ms": elapsed, "functions": app.describe()}))
        return True

    def _await_hook(self, app, name):
        value = app.hook(name)
        if hasattr(value, "__await__"):
            self.calls.tasks.result(value)

    def _run_hook(self, app, name):
        try:
            self._await_hook(app, name)
        except BaseException as error:
            sys.stderr.write(formatted(error))

    def _handle(self, message):
        """Handles one message of the worker. Returns the Run to call, or None if the message needs no call."""
        if message is None:
            process.end_group()
        header, blob = message
        kind = header["t"]
        if kind == "run":
            run = Run(header, blob, self.channel, self._limits)
            self.runs[run.id] = run
            return run
        if kind == "drain":
            self._draining = True
            if not self.runs:
                self.stop()
            return None
        run = self.runs.get(header["r"])
        if run is None:
            return None  # the run has just ended
        if kind == "credit":
            run.credit(header["n"])
        elif kind == "cancel":
            self.calls.cancel(run)
        return None

    def _ended(self, run):
        self.runs.pop(run.id, None)
        if self._draining and not self.runs:
            self.stop()


def _restore():
    """Restores the plain interpreter in a forked child."""
    logs.restore()
    sleep.restore()


def main():
    process.settle()
    process.hold_lifeline()
    fd = process.take_channel()
    # Removes the harness's folder from the path, so that the app's files come first. The harness's modules are already loaded.
    sys.path.pop(0)
    Harness(fd).serve()
