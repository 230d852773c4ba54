# PROTOCOL.md: the harness writes and reads exactly the files of snapshots/. Run: python3 -m unittest discover -s apps/worker/harness/python/tests
import json
import os
import sys
import threading
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from inference_harness.calls import check_item  # noqa: E402
from inference_harness.frames import Reader, frame  # noqa: E402
from inference_harness.output import TooLarge, Unserializable, encode, status_code  # noqa: E402
from inference_harness.run import Limits, Run  # noqa: E402

SNAPSHOTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "snapshots")
RUN_ID = "0199a0c4-7b1e-7c3a-9f10-3f2b8c1d4e5f"


def snapshot(name):
    with open(os.path.join(SNAPSHOTS, f"{name}.frame"), "rb") as file:
        return file.read()


class Sent:
    """Replaces the channel. Keeps the frames that are put in it."""

    def __init__(self):
        self.frames = []

    def put(self, data):
        self.frames.append(data)


def run(paced=False, output=1000, log=1000):
    return Run({"r": RUN_ID, "f": "generate", "paced": paced}, b"{}", Sent(), Limits(1000, output, log))


def read_all(data, size):
    """Returns the messages of `data`, written to a pipe in pieces of `size` bytes."""
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

    def test_messages_of_the_worker_are_read_in_pieces_of_any_size(self):
        names = ("init", "run", "credit", "cancel", "drain")
        data = b"".join(snapshot(f"worker-{name}") for name in names)
        for size in (1, 7, 64, len(data)):
            messages = read_all(data, size)
            self.assertEqual([header["t"] for header, _ in messages], list(names))
            self.assertEqual(messages[1][1], '{"prompt":"größe","n":12345678901234567890,"t":1.0}'.encode())


    def test_a_run_has_the_trace_of_its_message(self):
        [(header, blob)] = read_all(snapshot("worker-run-traced"), 7)
        traced = Run(header, blob, Sent(), Limits(1000, 1000, 1000))
        self.assertEqual(traced.traceparent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        self.assertIsNone(run().traceparent)


class Lines(unittest.TestCase):
    def sent(self, one):
        """Returns the lines of all frames, and the number of dropped lines."""
        lines, cut = [], 0
        for data in one.channel.frames:
            head, blob = data.split(b"\n", 1)
            header = json.loads(head)
            self.assertEqual([header["b"], header["n"]], [len(blob), blob.count(b"\n") + 1])
            cut += header["cut"]
            lines += [(line[0], line.split(" ", 1)[1]) for line in blob.decode().split("\n")]
        return lines, cut

    def test_lines_are_written_as_in_the_snapshot(self):
        one = run(log=60)
        printed = one.begin_printing()
        times = iter((1.0, 1.0, 1.0, 1795254882.252, 1795254882.253))
        with mock.patch("inference_harness.printed.time", times.__next__):
            for line in "abc":
                printed.write("o", f"{line}\n")
            printed.write("o", "loading ")
            printed.write("e", "a: b")
            printed.write("o", "größe")
            printed.write("o", "\n")
            printed.write("e", "\n")
        printed.seal()
        self.assertEqual(one.channel.frames, [snapshot("harness-log")])

    def test_written_pieces_become_whole_lines_and_an_unfinished_line_is_sent_at_the_end(self):
        one = run(log=10**6)
        printed = one.begin_printing()
        for text in ("a", "b\nc\n\nd", "", "e"):
            printed.write("o", text)
        printed.write("e", "x" * 20_000)
        one.finish_lines()
        self.assertEqual([line for stream, line in self.sent(one)[0] if stream == "o"], ["ab", "c", "", "de"])

    def test_over_the_limit_the_newest_lines_are_kept_and_dropped_lines_are_counted(self):
        for length in (0, 1, 100, 8000):
            one = run(log=100_000)
            for n in range(10_000):
                one.begin_printing().write("e", f"{n}".rjust(length) + "\n")
            one.finish_lines()
            lines, cut = self.sent(one)
            kept = [int(line) for _, line in lines]
            self.assertEqual(kept, list(range(cut, 10_000)))
            cost = sum(len(line) + 16 for _, line in lines)
            self.assertLessEqual(cost, 100_000)
            self.assertGreater(cost, 100_000 - 2 * (length + 21))

    def test_no_line_is_lost_while_threads_print_and_frames_are_sent(self):
        one = run(log=10**9)
        words = [threading.Thread(target=self.say, args=(one, who)) for who in range(4)]
        for word in words:
            word.start()
        while any(word.is_alive() for word in words):
            one.printed and one.printed.seal()
        one.finish_lines()
        lines = [line for _, line in self.sent(one)[0]]
        for who in range(4):
            self.assertEqual([line for line in lines if line.startswith(f"{who} ")], [f"{who} {n}" for n in range(2000)])

    def say(self, one, who):
        for n in range(2000):
            printed = one.printed or one.begin_printing()
            printed.write("o", f"{who} {n}")
            printed.write("o", "\n")


class Output(unittest.TestCase):
    def test_items_over_the_limit_are_cut_off_at_a_whole_item(self):
        one = run(output=10)
        one.pending.extend(["aaaa", "bbbb", "cccc"])
        one.seal()
        self.assertEqual(one.items, 2)
        self.assertTrue(one.channel.frames[0].endswith(b"aaaa\nbbbb"))
        with self.assertRaises(TooLarge):
            one.check_overflow()

    def test_the_size_of_an_item_is_the_number_of_bytes_that_are_sent(self):
        one = run()
        for kind, item in (("s", "\ud800" * 333), ("j", '"' + "\ud800" * 166 + '"'), ("s", "x" * 1000)):
            one.kind = kind
            check_item(one, item)
        for kind, item in (("s", "\ud800" * 334), ("j", '"' + "\ud800" * 167 + '"'), ("s", "x" * 1001)):
            one.kind = kind
            with self.assertRaises(TooLarge):
                check_item(one, item)

    def test_values_that_json_cannot_represent_are_refused(self):
        circle = []
        circle.append(circle)
        for value in (b"", {"a": b""}, float("inf"), {1, 2}, object(), circle):
            with self.assertRaises(Unserializable):
                encode(value)

    def test_bytes_alone_make_a_run_without_pacing_wait_for_the_store(self):
        one, woken = run(output=10**9), []
        for number in range(17):
            self.assertEqual(one.wait_with(lambda: woken.append(number)), number == 16)
            one.pending.append("x" * 65536)
            one.seal()
        self.assertEqual(woken, [])
        one.credit(1)
        self.assertEqual(woken, [])
        one.credit(2)
        self.assertEqual(woken, [16])
        self.assertEqual(one.allowed, sys.maxsize)

    def test_credits_open_a_growing_window(self):
        one = run(paced=True)
        self.assertEqual(one.allowed, 256)
        for number, allowed in ((1, 513), (2, 1026), (3, 2051), (4, 4100), (5, 4101), (5, 4101)):
            one.credit(number)
            self.assertEqual(one.allowed, allowed)


if __name__ == "__main__":
    unittest.main()
