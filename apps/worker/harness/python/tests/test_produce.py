# PROTOCOL.md, "A run" and "Pace": threads and tasks produce in the same way. Most tests call a
# generator and an async generator.
import asyncio
import threading

from inference_harness.calls import Calls
from inference_harness.ending import Endings
from inference_harness.here import here
from inference_harness.interrupt import ThreadInterrupt
from inference_harness.tasks import Tasks
from inference_harness.values import close
from parts import Awake, Sent, run

NEVER = 10  # seconds


class Served:
    """One function as an app, and what a harness needs to call it."""

    def __init__(self, function, paced=False, output=10**9):
        self.channel = Sent()
        self.run = run(paced=paced, output=output, item=output, channel=self.channel)
        self.ended = threading.Event()
        endings = Endings(self.channel, output, False, lambda _run: self.ended.set())
        tasks = Tasks(self.channel, Awake, endings, self.drive)
        app = type("App", (), {"bound": lambda _app, _run: (function, {})})()
        self.calls = Calls(app, self.channel, Awake, endings, tasks)
        self.start(lambda: self.calls.call(self.run))

    def start(self, work):
        def alone():
            here.interrupt = ThreadInterrupt()
            work()

        threading.Thread(target=alone, daemon=True).start()

    def drive(self, one, iterator):
        self.start(lambda: self.calls.stream(one, iterator))

    def end(self):
        """Returns the terminal message."""
        assert self.ended.wait(NEVER)
        return self.channel.headers()[-1]

    def paused(self):
        """Returns when the producer waits for credit."""
        tries = threading.Event()
        while self.run.items is None or self.run.items.number < self.run.items.allowed:
            assert not tries.wait(0.001)


def both(items, clean_up=lambda: None):
    """Returns a function that is a generator, and one that is an async generator."""

    def generator():
        try:
            yield from items()
        finally:
            clean_up()

    async def async_generator():
        try:
            for item in items():
                yield item
        finally:
            await asyncio.sleep(0)
            clean_up()

    return generator, async_generator


def test_items_of_every_kind_arrive_in_order():
    class Text(str):
        pass

    for function in both(lambda: iter(["a", Text("b"), {"c": 1}, 2.0, "d"])):
        served = Served(function)
        end = served.end()
        assert (end["t"], end["items"], end["streamed"]) == ("done", 5, True)
        assert served.channel.items() == ["a", "b", '{"c":1}', "2.0", "d"]
        assert [header["k"] for header in served.channel.headers() if "k" in header] == [*"sjs"]


def test_an_empty_stream_is_a_stream():
    for function in both(lambda: iter([])):
        end = Served(function).end()
        assert (end["t"], end["items"], end["streamed"]) == ("done", 0, True)


def test_a_paced_producer_waits_for_credit():
    for function in both(lambda: map(str, range(1000))):
        served = Served(function, paced=True)
        served.paused()
        assert served.run.items.number == 256
        served.run.items.credit(256)
        while served.run.items.number < 256 + 512:
            served.paused()
        assert not served.ended.is_set()
        served.run.items.credit(768)
        assert served.end()["items"] == 1000
        assert served.channel.items() == [str(n) for n in range(1000)]


def test_a_cancel_between_items_ends_a_waiting_producer_and_its_clean_up_runs():
    cleaned = []
    for function in both(lambda: map(str, range(1000)), lambda: cleaned.append(True)):
        served = Served(function, paced=True)
        served.paused()
        served.run.cancel()
        end = served.end()
        assert (end["t"], end["items"]) == ("cancelled", 256)
    assert cleaned == [True, True]


def test_a_cancel_before_the_call_ends_the_run_without_a_call():
    called = []
    served = Served(lambda: called.append(True))
    served.end()
    served.run = run(channel=served.channel)
    served.run.cancel()
    served.ended.clear()
    served.start(lambda: served.calls.call(served.run))
    assert served.end()["t"] == "cancelled"
    assert called == [True]


def test_a_failure_after_items_keeps_the_items():
    def broken():
        yield "one"
        raise ValueError("so")

    for function in both(broken):
        served = Served(function)
        end = served.end()
        assert (end["t"], end["items"], end["type"], end["message"]) == (
            "error",
            1,
            "ValueError",
            "so",
        )
        assert served.channel.items() == ["one"]


def test_an_exception_in_the_clean_up_does_not_hide_why_the_run_ended():
    def clean_up():
        raise ValueError("in the clean-up")

    generator, _ = both(lambda: iter(["one", object()]), clean_up)
    assert Served(generator).end()["code"] == "unserializable_output"


def test_items_over_the_limit_end_the_run_after_the_items_within_it():
    for function in both(lambda: ["x" * 100] * 1000):
        served = Served(function, output=1000)
        end = served.end()
        assert (end["t"], end["code"], end["items"]) == ("error", "output_too_large", 9)


def test_a_result_is_encoded_and_sets_its_status():
    async def asynchronous():
        return {"status_code": 201}

    for function in (lambda: {"status_code": 201}, asynchronous):
        served = Served(function)
        end = served.end()
        assert (end["t"], end["status"], end["streamed"]) == ("done", 201, False)
        assert served.channel.frames[-1].endswith(b'\n{"status_code":201}')


def test_a_result_over_the_limit_is_refused():
    assert Served(lambda: "x" * 100, output=100).end()["code"] == "output_too_large"


def test_an_awaited_generator_is_driven_in_a_thread():
    threads = []

    def generator():
        threads.append(threading.current_thread())
        yield "one"

    async def function():
        threads.append(threading.current_thread())
        return generator()

    served = Served(function)
    assert served.end()["items"] == 1
    assert len(set(threads)) == 2


def test_an_object_with_only_anext_is_a_stream():
    class Steps:
        def __init__(self):
            self.left = 2

        async def __anext__(self):
            if self.left == 0:
                raise StopAsyncIteration
            self.left -= 1
            return self.left

    served = Served(Steps)
    assert served.end()["items"] == 2
    assert served.channel.items() == ["1", "0"]


def test_a_cancelled_task_gets_one_cancel_and_its_clean_up_may_await():
    running, cleaned = threading.Event(), []

    async def function():
        running.set()
        try:
            await asyncio.sleep(NEVER)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(True)

    served = Served(function)
    assert running.wait(NEVER)
    served.run.cancel()
    served.run.cancel()
    assert served.end()["t"] == "cancelled"
    assert cleaned == [True]


def test_a_function_that_ignores_its_cancel_ends_at_its_next_item():
    running = threading.Event()

    def function():
        while True:
            try:
                running.set()
                while True:
                    pass
            except BaseException:
                yield "ignored"

    served = Served(function)
    assert running.wait(NEVER)
    served.run.cancel()
    assert served.end()["t"] == "cancelled"


def test_a_cancel_at_any_moment_reaches_only_its_own_run():
    """Each function ends by itself at about the time of its cancel. The next function runs on."""
    hit = []

    def short():
        for _ in range(200):
            pass

    def after():
        for _ in range(2000):
            pass
        return "whole"

    for delay in range(150):
        served = Served(short)
        for _ in range(delay * 20):
            pass
        served.run.cancel()
        assert served.end()["t"] in ("done", "cancelled")
        hit.append(Served(after).end()["t"])
    assert set(hit) == {"done"}


def test_close_reports_what_a_generator_raises():
    def generator():
        try:
            yield
        finally:
            raise ValueError("printed, not raised")

    value = generator()
    next(value)
    close(value)
    close(None)
