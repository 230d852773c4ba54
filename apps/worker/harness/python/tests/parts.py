# Parts that the harness's tests share: a channel without a pipe, runs, and the snapshots.
import contextvars
import json
import os
import threading

from inference_harness.limits import Limits
from inference_harness.run import Run

HERE = os.path.dirname(os.path.abspath(__file__))
SNAPSHOTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "snapshots")
RUN_ID = "0199a0c4-7b1e-7c3a-9f10-3f2b8c1d4e5f"


def snapshot(name):
    with open(os.path.join(SNAPSHOTS, f"{name}.frame"), "rb") as file:
        return file.read()


class Sent:
    """Replaces the channel. Keeps the frames that are put in it."""

    def __init__(self):
        self.frames = []
        self.queue = []
        # The channel never finds that a frame is due.
        self.due_at = float("inf")
        # Set at each flush.
        self.flushed = threading.Event()

    def put(self, data):
        self.frames.append(data)

    def flush(self):
        self.queue.clear()
        self.flushed.set()

    def hold_back(self):
        pass

    def headers(self):
        return [json.loads(data.split(b"\n", 1)[0]) for data in self.frames]

    def items(self):
        """Returns the sent items of a run without ready-made items."""
        blobs = [data.split(b"\n", 1)[1].decode() for data in self.frames if b'"k":' in data]
        return [item for blob in blobs for item in blob.split("\n")]


class Awake:
    """Replaces the ticker."""

    awake = True


def raised(kind, work, *arguments):
    """Returns the exception of a class that `work` raises. Fails if `work` raises none."""
    try:
        work(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"{work} raised no {kind.__name__}")


def run(paced=False, output=1000, log=1000, item=1000, channel=None):
    header = {"r": RUN_ID, "f": "generate", "paced": paced}
    context = contextvars.copy_context()
    return Run(header, b"{}", context, channel or Sent(), Limits(item, output, log))


def stream(**limits):
    """Returns a run after `started`, the run's items and the channel."""
    channel = Sent()
    one = run(channel=channel, **limits)
    items = one.begin_stream()
    channel.frames.clear()
    return one, items, channel
