# PROTOCOL.md, "A run": one run from `run` to its terminal message. Shared by the thread that
# drives the run, the thread that reads commands, and the ticker.
from __future__ import annotations

from contextvars import Context
from time import perf_counter
from typing import Any, BinaryIO, Callable

from .cancel import Cancellation
from .channel import Channel
from .frames import Header, done_frame, frame
from .items import Items
from .limits import Limits
from .output import TooLarge
from .printed import Printed


class Run:
    """One call of a function."""

    # A call makes one Run. With slots, that takes half a microsecond less.
    __slots__ = (
        "_channel", "_limits", "_made", "awaitable", "cancellation", "context", "files",
        "function", "id", "items", "iterator", "media", "over", "paced", "params", "printed",
        "quoted", "started_at", "traceparent",
    )  # fmt: skip

    def __init__(
        self, header: Header, params: bytes, context: Context, channel: Channel, limits: Limits
    ) -> None:
        self.id: str = header["r"]
        self.function: str = header["f"]
        self.paced: bool = header["paced"]
        self.traceparent: str | None = header.get("tp")
        self.params = params
        # The function's code runs in this context.
        self.context = context
        self.quoted = f'"{self.id}"'  # a UUID needs no escapes
        self._channel = channel
        self._limits = limits
        self.cancellation = Cancellation()
        self.started_at = perf_counter()
        # Set when the function returns a stream. Most runs have none.
        self.items: Items | None = None
        # What the function returned, while its code may still run.
        self.awaitable: object | None = None
        self.iterator: object | None = None
        # The media type that the function declares for its bytes.
        self.media: str | None = None
        # Files of a form that the function receives.
        self.files: list[BinaryIO] = []
        # Set when the run prints for the first time.
        self.printed: Printed | None = None
        self._made: list[Printed] = []
        # The run has sent its last line. Threads that it started may still print.
        self.over = False

    def cancel(self) -> None:
        """Requests that the run ends. Any thread may call it."""
        self.cancellation.cancel()
        if self.items is not None:
            self.items.stop()

    def in_context(self, work: Callable[..., None], *arguments: Any) -> None:
        """Calls `work` in a copy of the run's context, so that its output belongs to the run.

        For threads other than the function's."""
        self.context.copy().run(work, *arguments)

    # -- lines ------------------------------------------------------------------------------------

    def begin_printing(self) -> Printed:
        """Returns the object that takes this run's lines. Any of the run's threads may call it."""
        # Several threads may print first. All of them use the first object of the list.
        self._made.append(Printed(self.quoted, self._channel, self._limits.log))
        printed = self.printed = self._made[0]
        if self.over:
            printed.over = True
        return printed

    def finish_lines(self) -> None:
        """Sends every printed line, including a last line without a newline."""
        self.over = True
        if self.printed is not None:
            self.printed.finish()

    # -- stream -----------------------------------------------------------------------------------

    def begin_stream(self) -> Items:
        """Announces that items follow. Returns the object that takes them."""
        items = self.items = Items(self.quoted, self.paced, self._channel, self._limits)
        if self.cancellation.requested:
            items.stop()
        if self.media is not None:
            self._put_head("bytes")
        self._channel.put(frame({"t": "started", "r": self.id}))
        return items

    # -- terminal messages ------------------------------------------------------------------------

    def finish(self, result: bytes | None, status: int | None) -> None:
        """Ends the run with its result as JSON bytes, or with None after its items."""
        items, number = self.items, 0
        if items is not None:
            items.seal(self.printed)
            if items.overflow:
                message = f"the run's output is over {self._limits.output} bytes"
                return self.fail({"code": TooLarge.code, "message": message})
            number = items.number
        elapsed = self._elapsed()
        self._channel.put(
            done_frame(self.quoted, number, items is not None, elapsed, status, result)
        )

    def finish_bytes(self, result: bytes) -> None:
        """Ends the run with bytes of its media type."""
        self._put_head("binary")
        self._channel.put(frame(self._terminal("done"), result))

    def fail(self, error: dict[str, Any]) -> None:
        """Ends the run with the fields of an `error` message: `code`, `message` and others."""
        self._channel.put(frame({**self._terminal("error"), **error}))

    def finish_cancelled(self) -> None:
        """Ends the run as cancelled."""
        self._channel.put(frame(self._terminal("cancelled")))

    def _put_head(self, form: str) -> None:
        """Announces that the answer is a body of the run's media type."""
        head = {"t": "head", "r": self.id, "status": 200, "media": self.media, "form": form}
        self._channel.put(frame(head))

    def _terminal(self, kind: str) -> Header:
        items, number = self.items, 0
        if items is not None:
            items.seal(self.printed)
            number = items.number
        streamed, elapsed = items is not None, self._elapsed()
        return {"t": kind, "r": self.id, "items": number, "streamed": streamed, "ms": elapsed}

    def _elapsed(self) -> float:
        return round((perf_counter() - self.started_at) * 1000, 3)
