# PROTOCOL.md, "Cancel": a cancel may interrupt a function's thread anywhere, also while that thread
# wakes the ticker.
import sys
import threading
import time
from unittest import mock

from inference_harness.cancel import Cancelled
from inference_harness.ticker import Ticker
from parts import Sent

# Python 3.12 reports instructions only for frames that were traced before.
PLACES = "line" if sys.version_info[:2] == (3, 12) else "opcode"


def interrupted(work, place):
    """Calls `work` and raises a cancel at its line or instruction number `place`.

    Returns False if `work` ended before that place."""
    left = place

    def at_instruction(frame, event, _argument):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == PLACES:
            left -= 1
            if left < 0:
                raise Cancelled()
        return at_instruction

    def at_call(frame, event, argument):
        return at_instruction(frame, event, argument) if frame.f_code is work.__code__ else None

    sys.settrace(at_call)
    try:
        work()
    except Cancelled:
        return True
    finally:
        sys.settrace(None)
    return False


def leave_behind(channel, ticker):
    """Queues a frame and wakes the ticker, as a producer does."""
    channel.queue.append(b"left behind")
    if not ticker.awake:
        ticker.wake()


@mock.patch("inference_harness.ticker.IDLE_TICKS", 0)
def test_no_cancel_leaves_the_ticker_asleep():
    place, is_inside = 0, True
    while is_inside:
        channel = Sent()
        ticker = Ticker(channel, {})
        threading.Thread(target=ticker.serve, daemon=True).start()
        leave_behind(channel, ticker)
        assert channel.flushed.wait(10)
        channel.flushed.clear()
        while ticker.awake:
            time.sleep(0.001)
        is_inside = interrupted(ticker.wake, place)
        leave_behind(channel, ticker)
        assert channel.flushed.wait(10), f"asleep after a cancel at place {place}"
        place += 1
    assert place > 1
