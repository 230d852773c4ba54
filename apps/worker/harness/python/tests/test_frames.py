# PROTOCOL.md: the harness writes and reads exactly what is in snapshots/. Run: python3 -m unittest discover -s apps/worker/harness/python/tests
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from inference_harness.frames import Reader, frame  # noqa: E402
from inference_harness.output import TooLarge, Unserializable, encode, status_code  # noqa: E402
from inference_harness.run import Limits, Run  # noqa: E402

SNAPSHOTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "snapshots")
RUN_ID = "0199a0c4-7b1e-7c3a-9f10-3f2b8c1d4e5f"


def snapshot(name):
    with open(os.path.join(SNAPSHOTS, f"{name}.frame"), "rb") as file:
        return file.read()


class Sent:
    """Stands for the channel: keeps what is put in it."""

    def __init__(self):
        self.frames = []

    def put(self, data):
        self.frames.append(data)


def run(paced=False, output=1000):
    return Run({"r": RUN_ID, "f": "generate", "paced": paced}, b"{}", Sent(), Limits(1000, output))


def read_all(data, size):
    """The messages of `data`, written to a pipe in pieces of `size` bytes."""
    reading, writing = os.pipe()
    try:
        reader, messages, pieces = Reader(reading), [], [data[at : at + size] for at in range(0, len(data), size)]
        original = os.read

        def read(fd, count):
            if pieces:
                os.write(writing, pieces.pop(0))
                return original(fd, count)
            return b""

        os.read = read
        try:
            while True:
                message = reader.read()
                if message is None:
                    return messages
                messages.append(message)
        finally:
            os.read = original
    finally:
        os.close(reading)
        os.close(writing)


class Frames(unittest.TestCase):
    def test_items_are_written_as_in_the_snapshots(self):
        for name, kind, items in (
            ("strings", "s", ["Hello", "", "wörld"]),
            ("json", "j", [encode({"a": 1.0}), encode([1])]),
            ("lines", "s", ["data: {}\n\n"]),
        ):
            one = run()
            one.kind = kind
            one.pending.extend(items)
            one.seal()
            self.assertEqual(one.channel.frames, [snapshot(f"harness-items-{name}")])

    def test_terminals_are_written_as_in_the_snapshots(self):
        done, streamed, cancelled, error = run(), run(), run(), run()
        for one, elapsed in ((done, 326.34), (streamed, 1001.5), (cancelled, 501.022), (error, 0.065)):
            one._elapsed = lambda elapsed=elapsed: elapsed
        done.finish(b'{"status_code":201}', status_code({"status_code": 201}))
        self.assertEqual(done.channel.frames, [snapshot("harness-done")])
        streamed.streamed, streamed.items = True, 3
        streamed.finish(None, None)
        self.assertEqual(streamed.channel.frames, [snapshot("harness-done-streamed")])
        cancelled.streamed, cancelled.items = True, 1
        cancelled.finish_cancelled()
        self.assertEqual(cancelled.channel.frames, [snapshot("harness-cancelled")])
        details = [{"loc": ["body", "prompt"], "msg": "Field required", "type": "missing"}]
        message = "wrong parameters for generate: prompt (missing)"
        error.fail({"code": "invalid_input", "message": message, "details": details})
        self.assertEqual(error.channel.frames, [snapshot("harness-error")])

    def test_other_messages_are_written_as_in_the_snapshots(self):
        one = run()
        one.announce_stream()
        self.assertEqual(one.channel.frames, [snapshot("harness-started")])
        self.assertEqual(frame({"t": "bye"}), snapshot("harness-bye"))
        self.assertEqual(frame({"t": "hello", "proto": 1, "pid": 4711, "python": "3.11.7"}), snapshot("harness-hello"))

    def test_the_workers_messages_are_read_however_they_are_cut(self):
        names = ("init", "run", "credit", "cancel", "drain")
        data = b"".join(snapshot(f"worker-{name}") for name in names)
        for size in (1, 7, 64, len(data)):
            messages = read_all(data, size)
            self.assertEqual([header["t"] for header, _ in messages], list(names))
            self.assertEqual(messages[1][1], '{"prompt":"größe","n":12345678901234567890,"t":1.0}'.encode())


class Output(unittest.TestCase):
    def test_items_over_the_limit_are_cut_off_at_a_whole_item(self):
        one = run(output=10)
        one.pending.extend(["aaaa", "bbbb", "cccc"])
        one.seal()
        self.assertEqual(one.items, 2)
        self.assertTrue(one.channel.frames[0].endswith(b"aaaa\nbbbb"))
        with self.assertRaises(TooLarge):
            one.check_overflow()

    def test_what_is_not_json_is_refused(self):
        circle = []
        circle.append(circle)
        for value in (b"", {"a": b""}, float("inf"), {1, 2}, object(), circle):
            with self.assertRaises(Unserializable):
                encode(value)

    def test_credits_open_a_growing_window(self):
        one = run(paced=True)
        self.assertEqual(one.allowed, 256)
        for number, allowed in ((1, 513), (2, 1026), (3, 2051), (4, 4100), (5, 4101), (5, 4101)):
            one.credit(number)
            self.assertEqual(one.allowed, allowed)


if __name__ == "__main__":
    unittest.main()
