# PROTOCOL.md, "Items", "Pace" and "Latency": takes the items of a function, checks and encodes
# them, and sends them. Threads and tasks use the same loop. They differ in how they get an item
# and how they wait.
from __future__ import annotations

from collections.abc import Generator, Iterable
from time import monotonic

from . import output
from .channel import Channel
from .items import Items
from .run import Run
from .ticker import Ticker

# The producer sends a frame at this size (bytes). Measured: a balance of latency and system calls.
FRAME_SIZE = 32 * 1024


def produce(
    run: Run,
    items: Items,
    source: Iterable[object],
    channel: Channel,
    ticker: Ticker,
    refilled: bool = False,
) -> Generator[bool, None, None]:
    """Sends the items of `source`: the hot loop.

    Each item costs a type check, two lengths and one clock reading. Yields True after a frame: the
    caller then waits until it may continue (`Items.wait_with`). Raises Cancelled, OutputError and
    what the function raises.

    With `refilled`, `source` is a list, and the loop yields False after each item. The caller then
    appends the next item. The caller may clear the list between two items.
    """
    encode, append, longest = output.encode, items.pending.append, items.longest
    count = size = 0
    while True:
        for item in source:
            if type(item) is str:
                text = item
                if items.kind != "s":
                    items.change_kind("s", run.printed)
            elif isinstance(item, str):
                text = str.__str__(item)  # str() of a member of a str Enum returns its name
                if items.kind != "s":
                    items.change_kind("s", run.printed)
            else:
                text = encode(item)
                if items.kind != "j":
                    items.change_kind("j", run.printed)
            length = len(text)
            if length > longest:
                items.check(text)
            append(text)
            count += 1
            size += length
            if size >= FRAME_SIZE or count >= items.allowed or monotonic() >= channel.due_at:
                size = 0
                _send(run, items, channel)
                yield True
                run.cancellation.enter()
                items.check_overflow()
            elif not ticker.awake:
                ticker.wake()
            if refilled:
                yield False
        if not refilled:
            return


def _send(run: Run, items: Items, channel: Channel) -> None:
    """Sends the pending items.

    Waits while the pipe is slow. A cancel cannot interrupt the writing."""
    run.cancellation.leave()
    if not run.cancellation.requested:  # otherwise, `enter` raises Cancelled
        items.seal(run.printed)
        channel.flush()
        channel.hold_back()
