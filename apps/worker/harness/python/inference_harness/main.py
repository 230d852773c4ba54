# PROTOCOL.md, "Life of a replica": hello, init, ready, runs, drain, bye.
from __future__ import annotations

import os
import platform
import sys
import threading
from time import perf_counter
from typing import Any, Callable

from . import logs, process, sleep
from .app import App
from .calls import Calls
from .channel import Channel
from .ending import Endings
from .failures import formatted, message_of
from .frames import Header, Message, Reader, frame
from .limits import Limits
from .run import Run
from .single import Single
from .tasks import Tasks
from .threads import Threads
from .ticker import Ticker

PROTOCOL = 1


class Replica:
    """The replica that `init` describes."""

    def __init__(self, init: Header, reader: Reader, channel: Channel) -> None:
        self._channel = channel
        self._limits = Limits(
            init["max_item_bytes"], init["max_output_bytes"], init["max_log_bytes"]
        )
        self._runs: dict[str, Run] = {}
        # Whether the arguments of calls are checked and converted.
        self._validate: bool = init.get("validate", True)
        self._draining = False
        ticker = self._ticker = Ticker(channel, self._runs)
        app = self._app = App(init["app"], init["entry"])
        endings = Endings(channel, self._limits.output, init["debug"], self._ended)
        self._tasks = Tasks(channel, ticker, endings, self._drive)
        calls = self._calls = Calls(app, channel, ticker, endings, self._tasks)
        self._service: Single | Threads
        if init["concurrency"] == 1:
            self._service = Single(reader, channel, self._handle, calls.call)
        else:
            self._service = Threads(reader, channel, ticker, self._handle, calls.call)

    def serve(self) -> None:
        """Serves the worker until the replica has been drained."""
        process.on_fork(self._channel, _restore)
        logs.replace(self._channel, self._ticker, self._limits.log)
        threading.Thread(target=self._ticker.serve, daemon=True).start()
        self._service.start()
        if self._start():
            self._service.serve()
            for hook in self._app.tear_down():
                self._run_hook(hook)
            self._ticker.finish_lines()
            self._channel.finish(frame({"t": "bye"}))

    def _start(self) -> bool:
        """Imports the app and sets it up. Returns False if that failed."""
        started = perf_counter()
        stage = "load"
        try:
            self._app.load()
            stage = "setup"
            for value in self._app.set_up():
                self._await(value)
        except BaseException as error:
            text = formatted(error)
            sys.stderr.write(text)
            self._ticker.finish_lines()
            fields = {"type": type(error).__name__, "message": message_of(error), "traceback": text}
            self._channel.finish(frame({"t": "init_error", "stage": stage, **fields}))
            return False
        self._app.keep_context()
        self._app.describe_types(self._validate)
        elapsed = round((perf_counter() - started) * 1000, 3)
        functions = self._app.describe()
        self._channel.send(frame({"t": "ready", "setup_ms": elapsed, "functions": functions}))
        return True

    def _await(self, value: Any) -> None:
        if hasattr(value, "__await__"):
            self._tasks.result(value)

    def _run_hook(self, hook: Callable[[], object]) -> None:
        try:
            self._await(hook())
        except BaseException as error:
            sys.stderr.write(formatted(error))

    def _handle(self, message: Message | None) -> Run | None:
        """Handles one message of the worker. Returns the Run to call, or None if there is none."""
        if message is None:
            process.end_group()
        header, blob = message
        kind = header["t"]
        if kind == "run":
            run = Run(header, blob, self._app.context.copy(), self._channel, self._limits)
            self._runs[run.id] = run
            return run
        if kind == "drain":
            self._draining = True
            if not self._runs:
                self._service.stop()
            return None
        run = self._runs.get(header["r"])
        if run is None:
            return None  # the run has just ended
        if kind == "credit" and run.items is not None:
            run.items.credit(header["n"])
        elif kind == "cancel":
            run.cancel()
        return None

    def _drive(self, run: Run, iterator: object) -> None:
        """Drives an iterator that an awaited function returned, in a function's thread."""
        self._service.submit(lambda: run.in_context(self._calls.stream, run, iterator))

    def _ended(self, run: Run) -> None:
        self._runs.pop(run.id, None)
        if self._draining and not self._runs:
            self._service.stop()


def _restore() -> None:
    """Restores the plain interpreter in a forked child."""
    logs.restore()
    sleep.restore()


def serve(fd: int) -> None:
    """Serves the worker on a descriptor of the protocol until the process has been drained."""
    channel, reader = Channel(fd), Reader(fd)
    python = platform.python_version()
    channel.send(frame({"t": "hello", "proto": PROTOCOL, "pid": os.getpid(), "python": python}))
    message = reader.read()
    if message is not None:
        Replica(message[0], reader, channel).serve()


def main() -> None:
    """Runs the process of a replica."""
    process.settle()
    fd = process.take_channel()
    # Removes the harness's folder from the path, so that the app's files come first. The harness's
    # modules are already loaded.
    sys.path.pop(0)
    serve(fd)
