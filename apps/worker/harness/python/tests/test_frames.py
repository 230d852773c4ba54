# PROTOCOL.md: the harness writes and reads exactly the files of snapshots/.
import contextvars
import os
from unittest import mock

from inference_harness.frames import Reader, frame
from inference_harness.limits import Limits
from inference_harness.output import encode, status_code
from inference_harness.run import Run
from inference_harness.uploads import decoded
from parts import RUN_ID, Sent, run, snapshot, stream


def read_all(data, size):
    """Returns the messages of `data`, written to a pipe in pieces of `size` bytes."""
    reading, writing = os.pipe()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    original = os.read

    def read(fd, count):
        if not pieces:
            return b""
        os.write(writing, pieces.pop(0))
        return original(fd, count)

    try:
        reader, messages = Reader(reading), []
        with mock.patch("os.read", read):
            while True:
                message = reader.read()
                if message is None:
                    return messages
                messages.append(message)
    finally:
        os.close(reading)
        os.close(writing)


def with_elapsed(one, elapsed):
    one.started_at = 0.0
    return mock.patch("inference_harness.run.perf_counter", lambda: elapsed / 1000)


def test_items_are_written_as_in_the_snapshots():
    for name, kind, texts in (
        ("strings", "s", ["Hello", "", "wörld"]),
        ("json", "j", [encode({"a": 1.0}), encode([1])]),
        ("lines", "s", ["data: {}\n\n"]),
    ):
        _, items, channel = stream()
        items.kind = kind
        items.pending.extend(texts)
        items.seal(None)
        assert channel.frames == [snapshot(f"harness-items-{name}")], name


def test_bytes_of_a_media_type_are_written_as_in_the_snapshots():
    channel = Sent()
    pieces = run(channel=channel)
    pieces.media = "audio/mpeg"
    pieces.begin_stream().send_bytes(b"\x00\xff\n\r{", None)
    fields = {"t": "head", "r": RUN_ID, "status": 200}
    head = frame({**fields, "media": "audio/mpeg", "form": "bytes"})
    started, items = snapshot("harness-started"), snapshot("harness-items-bytes")
    assert channel.frames == [head, started, items]
    channel = Sent()
    whole = run(channel=channel)
    whole.media = "image/png"
    with with_elapsed(whole, 12.5):
        whole.finish_bytes(b"\x89PNG")
    head = frame({**fields, "media": "image/png", "form": "binary"})
    assert channel.frames == [head, snapshot("harness-done-bytes")]


def test_a_done_run_is_written_as_in_the_snapshot():
    channel = Sent()
    done = run(channel=channel)
    with with_elapsed(done, 326.34):
        done.finish(b'{"status_code":201}', status_code({"status_code": 201}))
    assert channel.frames == [snapshot("harness-done")]


def test_a_streamed_run_is_written_as_in_the_snapshot():
    streamed, items, channel = stream()
    items.number = 3
    with with_elapsed(streamed, 1001.5):
        streamed.finish(None, None)
    assert channel.frames == [snapshot("harness-done-streamed")]


def test_a_cancelled_run_is_written_as_in_the_snapshot():
    cancelled, items, channel = stream()
    items.number = 1
    with with_elapsed(cancelled, 501.022):
        cancelled.finish_cancelled()
    assert channel.frames == [snapshot("harness-cancelled")]


def test_a_failed_run_is_written_as_in_the_snapshot():
    channel = Sent()
    failed = run(channel=channel)
    details = [{"loc": ["body", "prompt"], "msg": "Field required", "type": "missing"}]
    message = "wrong parameters for generate: prompt (missing)"
    with with_elapsed(failed, 0.065):
        failed.fail({"code": "invalid_input", "message": message, "details": details})
    assert channel.frames == [snapshot("harness-error")]


def test_other_messages_are_written_as_in_the_snapshots():
    channel = Sent()
    run(channel=channel).begin_stream()
    assert channel.frames == [snapshot("harness-started")]
    assert frame({"t": "bye"}) == snapshot("harness-bye")
    hello = {"t": "hello", "proto": 1, "pid": 4711, "python": "3.11.7"}
    assert frame(hello) == snapshot("harness-hello")


def test_messages_of_the_worker_are_read_in_pieces_of_any_size():
    names = ["init", "run", "credit", "cancel", "drain"]
    data = b"".join(snapshot(f"worker-{name}") for name in names)
    for size in (1, 7, 64, len(data)):
        messages = read_all(data, size)
        assert [header["t"] for header, _ in messages] == names
        assert messages[1][1] == '{"prompt":"größe","n":12345678901234567890,"t":1.0}'.encode()


def test_parameters_with_files_are_read_as_in_the_snapshot():
    for size in (1, 13, 1000):
        [(_, blob)] = read_all(snapshot("worker-run-files"), size)
        arguments = decoded(blob)
        assert arguments == {
            "n": 12345678901234567890,
            "photo": b"\x89\xff\n",
            "more": [b"\x00{", b""],
        }
        photo, (first, second) = arguments["photo"], arguments["more"]
        assert (photo.name, photo.content_type) == ("größe.png", "image/png")
        assert [first.name, second.name] == ["a.bin", "b.bin"]


def test_a_run_has_the_trace_of_its_message():
    [(header, blob)] = read_all(snapshot("worker-run-traced"), 7)
    traced = Run(header, blob, contextvars.copy_context(), Sent(), Limits(1000, 1000, 1000))
    assert traced.traceparent == "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert run().traceparent is None
