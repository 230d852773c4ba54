# PROTOCOL.md, "Lines": the lines of a run are whole, in order, and bounded.
import json
import threading
from unittest import mock

from parts import Sent, run, snapshot


def sent(channel):
    """Returns the lines of all frames, and the number of dropped lines."""
    lines, cut = [], 0
    for data in channel.frames:
        head, blob = data.split(b"\n", 1)
        header = json.loads(head)
        assert [header["b"], header["n"]] == [len(blob), blob.count(b"\n") + 1]
        cut += header["cut"]
        lines += [(line[0], line.split(" ", 1)[1]) for line in blob.decode().split("\n")]
    return lines, cut


def test_lines_are_written_as_in_the_snapshot():
    channel = Sent()
    printed = run(log=60, channel=channel).begin_printing()
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
    assert channel.frames == [snapshot("harness-log")]


def test_written_pieces_become_whole_lines_and_an_unfinished_line_is_sent_at_the_end():
    channel = Sent()
    one = run(log=10**6, channel=channel)
    printed = one.begin_printing()
    for text in ("a", "b\nc\n\nd", "", "e"):
        printed.write("o", text)
    printed.write("e", "x" * 20_000)
    one.finish_lines()
    assert [line for where, line in sent(channel)[0] if where == "o"] == ["ab", "c", "", "de"]


def test_over_the_limit_the_newest_lines_are_kept_and_dropped_lines_are_counted():
    for length in (0, 1, 100, 8000):
        channel = Sent()
        one = run(log=100_000, channel=channel)
        for n in range(10_000):
            one.begin_printing().write("e", f"{n}".rjust(length) + "\n")
        one.finish_lines()
        lines, cut = sent(channel)
        assert [int(line) for _, line in lines] == list(range(cut, 10_000))
        cost = sum(len(line) + 16 for _, line in lines)
        assert 100_000 - 2 * (length + 21) < cost <= 100_000


def test_no_line_is_lost_while_threads_print_and_frames_are_sent():
    channel = Sent()
    one = run(log=10**9, channel=channel)

    def say(who):
        for n in range(2000):
            printed = one.printed or one.begin_printing()
            printed.write("o", f"{who} {n}")
            printed.write("o", "\n")

    threads = [threading.Thread(target=say, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if one.printed is not None:
            one.printed.seal()
    one.finish_lines()
    lines = [line for _, line in sent(channel)[0]]
    for who in range(4):
        own = [line for line in lines if line.startswith(f"{who} ")]
        assert own == [f"{who} {n}" for n in range(2000)]


def test_a_thread_that_outlives_its_run_prints_into_the_same_lines():
    one = run()
    one.finish_lines()
    printed = one.begin_printing()
    assert printed.over
    assert one.begin_printing() is printed
