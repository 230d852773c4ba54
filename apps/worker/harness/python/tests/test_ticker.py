# PROTOCOL.md, "Cancel": a cancel may interrupt a function's thread anywhere, also while that thread wakes the ticker.
import os
import sys
import threading
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from inference_harness.run import Cancelled  # noqa: E402
from inference_harness.ticker import Ticker  # noqa: E402


# Python 3.12 reports instructions only for frames that were traced before.
PLACES = "line" if sys.version_info[:2] == (3, 12) else "opcode"


class Sent:
    """Replaces the channel. `flushed` is set when the ticker has sent the queue."""

    def __init__(self):
        self.queue = []
        self.flushed = threading.Event()

    def flush(self):
        self.queue.clear()
        self.flushed.set()


def interrupted(work, place):
    """Calls `work` and raises a cancel at its line or instruction number `place`. Returns False if `work` ended before that place."""
    left = place

    def at_instruction(frame, event, _argument):
        nonlocal left
        frame.f_trace_opcodes = True
        if event == PLACES:
            left -= 1
            if left < 0:
                raise Cancelled()
        return at_instruction

    sys.settrace(lambda frame, event, argument: at_instruction(frame, event, argument) if frame.f_code is work.__code__ else None)
    try:
        work()
    except Cancelled:
        return True
    finally:
        sys.settrace(None)
    return False


class Interrupted(unittest.TestCase):
    @mock.patch("inference_harness.ticker.IDLE_TICKS", 0)
    def test_no_cancel_leaves_the_ticker_asleep(self):
        place, is_inside = 0, True
        while is_inside:
            channel = Sent()
            ticker = Ticker(channel, {})
            threading.Thread(target=ticker.serve, daemon=True).start()
            self.leave_behind(channel, ticker)
            self.assertTrue(channel.flushed.wait(10))
            channel.flushed.clear()
            while ticker.awake:
                time.sleep(0.001)
            is_inside = interrupted(ticker.wake, place)
            self.leave_behind(channel, ticker)
            self.assertTrue(channel.flushed.wait(10), f"asleep after a cancel at place {place}")
            place += 1
        self.assertGreater(place, 1)

    def leave_behind(self, channel, ticker):
        """Queues a frame and wakes the ticker, as a producer does."""
        channel.queue.append(b"left behind")
        if not ticker.awake:
            ticker.wake()


if __name__ == "__main__":
    unittest.main()
