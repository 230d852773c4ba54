# Forks replicas, drains each replica while its runs end, and prints the missing messages of each
# replica as a line of JSON. A fork starts in 5 ms and a new interpreter in 100 ms. Both end in the
# same way: with the interpreter's shutdown. Arguments: the number of replicas, and the seed.
import gc
import json
import os
import random
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from inference_harness.frames import Reader, frame  # noqa: E402
from inference_harness.main import serve  # noqa: E402

APP = os.path.join(HERE, "drained_app")
FUNCTIONS = ("gives", "streams", "prints", "awaits", "fails")


class Replica:
    """The worker's side of one replica."""

    def __init__(self, pid, channel, concurrency):
        self._pid = pid
        self._channel = channel
        self._reader = Reader(channel.fileno())
        self._runs = {}
        self._items = {}
        self._torn_down = False
        self._last = None
        limits = {"max_item_bytes": 10**6, "max_output_bytes": 10**6, "max_log_bytes": 10**6}
        app = {"app": APP, "entry": "main.py", "concurrency": concurrency, "debug": False}
        self._send({"t": "init", "proto": 1, **app, **limits})

    def begin(self, functions, gate):
        while self._read() != "ready":
            pass
        params = json.dumps({"fd": gate}).encode()
        for number, function in enumerate(functions):
            self._runs[str(number)] = function
            self._send({"t": "run", "r": str(number), "f": function, "paced": False}, params)

    def drain(self):
        self._send({"t": "drain"})

    def await_drain(self):
        """Returns when the harness has read the drain.

        It reads messages in order, so it has when a call that was sent later has ended."""
        self._send({"t": "run", "r": "after", "f": "returns", "paced": False}, b"{}")
        while self._read() != "after":
            pass

    def missing(self):
        """Reads to the end. Returns the missing messages."""
        while self._read() is not None:
            pass
        self._channel.close()
        problems = [f"the end of {function}" for function in self._runs.values()]
        if not self._torn_down:
            problems.append("what teardown() printed")
        if self._last != "bye":
            problems.append(f"bye at the end, which is {self._last}")
        status = os.waitpid(self._pid, 0)[1]
        if status != 0:
            problems.append(f"exit code 0 (status {status})")
        return problems

    def _read(self):
        """Reads one message. Returns its run or its kind, or None at the end."""
        message = self._reader.read()
        if message is None:
            return None
        header, blob = message
        self._last = kind = header.get("t")
        run = header.get("r")
        if kind is None:
            self._items[run] = self._items.get(run, 0) + header["n"]
        elif kind == "log":
            self._torn_down = self._torn_down or b"torn down" in blob
        elif kind in ("done", "error") and header["items"] == self._items.get(run, 0):
            self._runs.pop(run, None)
        return run if run is not None and kind in ("done", "error") else kind or "items"

    def _send(self, header, blob=None):
        self._channel.sendall(frame(header, blob))


# The shutdown of a fork looks for garbage, and copies the memory that it visits. Frozen objects are
# not visited, so a fork ends in 14 ms instead of 41 ms.
gc.freeze()


def drive(rounds, chance):
    """Prints the missing messages. In a forked replica, returns the descriptor of its channel."""
    for number in range(rounds):
        concurrency = chance.choice((1, 100, 100))
        functions = [
            chance.choice(FUNCTIONS) for _ in range(1 if concurrency == 1 else chance.randint(2, 8))
        ]
        gate, opener = os.pipe()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            os.close(opener)
            ours.close()
            return theirs.detach()
        theirs.close()
        os.close(gate)
        replica = Replica(pid, ours, concurrency)
        replica.begin(functions, gate)
        replica.drain()
        if concurrency > 1 and chance.random() < 0.8:
            replica.await_drain()
        os.close(opener)
        problems = replica.missing()
        if problems:
            print(
                json.dumps(
                    {
                        "replica": number,
                        "concurrency": concurrency,
                        "runs": functions,
                        "missing": problems,
                    }
                ),
                flush=True,
            )
    return None


channel = drive(int(sys.argv[1]), random.Random(int(sys.argv[2])))
if channel is not None:
    serve(channel)
