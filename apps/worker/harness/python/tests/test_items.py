# PROTOCOL.md, "Items" and "Pace": limits of the output, and the credit of a producer.
import sys

from inference_harness.output import TooLarge, Unserializable, encode, json_bytes, string_bytes
from parts import raised, run, stream


def test_items_over_the_limit_are_cut_off_at_a_whole_item():
    _, items, channel = stream(output=10)
    items.pending.extend(["aaaa", "bbbb", "cccc"])
    items.seal(None)
    assert items.number == 2
    assert channel.items() == ["aaaa", "bbbb"]
    assert raised(TooLarge, items.check_overflow)


def test_a_run_whose_output_is_over_the_limit_fails_at_its_end():
    one, items, channel = stream(output=3)
    items.pending.append("aaaa")
    one.finish(None, None)
    [header] = channel.headers()
    assert (header["t"], header["code"], header["items"]) == ("error", "output_too_large", 0)


def test_the_size_of_an_item_is_the_number_of_bytes_that_are_sent():
    _, items, _ = stream()
    for kind, item in (("s", "\ud800" * 333), ("j", '"' + "\ud800" * 166 + '"'), ("s", "x" * 1000)):
        items.kind = kind
        items.check(item)
    for kind, item in (("s", "\ud800" * 334), ("j", '"' + "\ud800" * 167 + '"'), ("s", "x" * 1001)):
        items.kind = kind
        assert raised(TooLarge, items.check, item)


def test_values_that_json_cannot_represent_are_refused():
    circle = []
    circle.append(circle)
    for value in (b"\xff", {"a": b"\xff"}, float("inf"), {1j}, object(), circle):
        assert raised(Unserializable, encode, value)


def test_a_lone_surrogate_stays_an_escape_in_json_and_becomes_a_replacement_in_a_string():
    assert json_bytes('"\ud800"') == b'"\\ud800"'
    assert string_bytes("\ud800") == "\ufffd".encode()


def test_bytes_alone_make_a_run_without_pacing_wait_for_the_store():
    _, items, _ = stream(output=10**9)
    woken = []
    for number in range(17):
        assert items.wait_with(lambda number=number: woken.append(number)) == (number == 16)
        items.pending.append("x" * 65536)
        items.seal(None)
    items.credit(1)
    assert woken == []
    items.credit(2)
    assert woken == [16]
    assert items.allowed == sys.maxsize


def test_credits_open_a_growing_window():
    _, items, _ = stream(paced=True)
    assert items.allowed == 256
    for number, allowed in ((1, 513), (2, 1026), (3, 2051), (4, 4100), (5, 4101), (5, 4101)):
        items.credit(number)
        assert items.allowed == allowed


def test_a_cancel_wakes_a_waiting_producer_and_no_credit_lets_it_wait_again():
    one, items, _ = stream(paced=True)
    items.number = 256
    woken = []
    assert items.wait_with(lambda: woken.append(True))
    one.cancel()
    assert woken == [True]
    items.credit(1)
    assert not items.wait_with(lambda: None)


def test_a_stream_that_begins_after_the_cancel_stops_at_its_first_item():
    one = run()
    one.cancel()
    assert one.begin_stream().allowed == -1
