# PROTOCOL.md, "A run": sends exactly one terminal message for each run, after every line and item
# of the run.
from __future__ import annotations

from typing import Callable, cast

from . import output, process
from .channel import Channel
from .failures import error_fields
from .frames import frame
from .media import BYTES_KINDS
from .output import TooLarge
from .run import Run


class Endings:
    """Ends runs. Any thread may use it, in the run's context."""

    def __init__(
        self, channel: Channel, most: int, debug: bool, on_end: Callable[[Run], None]
    ) -> None:
        self._channel = channel
        # The largest result, in bytes.
        self._most = most
        self._debug = debug
        self._on_end = on_end

    def end(self, run: Run, failure: BaseException | None, result: object = None) -> None:
        """Ends a run with the exception or the result of its function."""
        cancelled = run.cancellation.end()
        blob = status = fields = None
        is_body = (
            run.media is not None and run.items is None and issubclass(type(result), BYTES_KINDS)
        )
        if failure is None and run.items is None:
            try:
                blob, status = (
                    self._body(cast("bytes", result)) if is_body else self._encoded(result)
                )
            except BaseException as error:
                failure = error
        if failure is not None and not cancelled:
            fields = error_fields(failure, self._debug)
        run.finish_lines()
        for file in run.files:
            file.close()
        if failure is not None and process.has_no_files_left():
            self._channel.put(frame({"t": "worn", "why": "it has no file descriptors left"}))
        if failure is None and is_body and blob is not None:
            run.finish_bytes(blob)
        elif failure is None:
            run.finish(blob, status)
        elif fields is None:
            run.finish_cancelled()
        else:
            run.fail(fields)
        # The context refers to the run. Without this cycle, a run's memory is free at once, and the
        # garbage collector has less to do.
        del run.context
        self._on_end(run)

    def _body(self, result: bytes) -> tuple[bytes, None]:
        """Returns the bytes of a declared media type."""
        if memoryview(result).nbytes > self._most:
            raise TooLarge(f"the result is over {self._most} bytes")
        return bytes(result), None

    def _encoded(self, result: object) -> tuple[bytes, int | None]:
        """Returns the JSON bytes of a result, and the HTTP status that it sets."""
        text, status = output.encode_result(result)
        blob = output.json_bytes(text)
        if len(blob) > self._most:
            raise TooLarge(f"the result is over {self._most} bytes")
        return blob, status
