# PROTOCOL.md, "Cancel": each event in each state, and the promises that follow from the table.
import threading

from inference_harness.cancel import TABLE, Cancellation, Cancelled
from parts import raised

EVENTS = ("enter", "leave", "sleep", "wake", "cancel", "deliver", "end")

# For each state: the next state after each event, in the order of EVENTS, and the effect if any.
NEXT = {
    "held": "running held held held asked held ended",
    "running": "running held sleeping running interrupting:interrupt running running",
    "sleeping": "sleeping held sleeping running unwinding:rouse sleeping sleeping",
    "asked": "asked:raise asked asked asked asked asked ended",
    "interrupting": "interrupting asked:withdraw interrupting interrupting interrupting "
    "unwinding:raise interrupting",
    "unwinding": "unwinding asked unwinding unwinding:raise unwinding unwinding unwinding",
    "ended": "ended ended ended ended ended ended ended",
}


class Interrupt:
    """Records what the cancellation asks for."""

    def __init__(self):
        self.did = []

    def send(self):
        self.did.append("interrupt")

    def withdraw(self):
        self.did.append("withdraw")


def act(one, event):
    """Sends an event. Returns "raise" if the caller has to raise Cancelled, else None."""
    try:
        if event == "deliver":
            return "raise" if one.deliver() else None
        method = {"sleep": "begin_sleep", "wake": "end_sleep"}.get(event, event)
        getattr(one, method)(*([threading.Lock()] if event == "sleep" else []))
    except Cancelled:
        return "raise"
    return None


def after(state, event):
    """Returns the next state and the effect of an event."""
    one, interrupt, sleeper = Cancellation(), Interrupt(), threading.Lock()
    one.interrupt = interrupt
    sleeper.acquire()
    if state == "sleeping":
        one.enter()
        assert one.begin_sleep(sleeper)
    one.state = state
    effect = act(one, event) or (interrupt.did[0] if interrupt.did else None)
    if state == "sleeping" and not sleeper.locked():
        effect = "rouse"
    return one.state if effect is None else f"{one.state}:{effect}"


def test_every_event_in_every_state_has_the_next_state_and_effect_of_the_table():
    assert set(NEXT) == set(TABLE)
    for state, row in NEXT.items():
        found = [after(state, event) for event in EVENTS]
        assert found == row.split(), f"{state}: {found}"


def test_the_table_has_no_row_or_event_that_changes_nothing():
    for state, row in TABLE.items():
        for event, (next_state, action) in row.items():
            assert event in EVENTS
            assert (next_state, action) != (state, None), f"{state} × {event}"


def test_no_sequence_of_events_interrupts_twice():
    """Follows every sequence of events from the start. Each has at most one interrupt or rouse."""
    seen, search = set(), [("held", 0)]
    while search:
        state, raised_so_far = search.pop()
        if (state, raised_so_far) in seen:
            continue
        seen.add((state, raised_so_far))
        assert raised_so_far <= 1
        for next_state, action in TABLE[state].values():
            search.append((next_state, raised_so_far + (action in ("interrupt", "rouse"))))


def test_no_interrupt_is_sent_while_the_harness_has_the_run():
    for state in ("held", "asked", "unwinding", "ended"):
        for action in [action for _, action in TABLE[state].values()]:
            assert action not in ("interrupt", "rouse")


def test_a_cancel_before_the_call_raises_at_the_entry():
    one = Cancellation()
    one.cancel()
    assert one.requested
    assert raised(Cancelled, one.enter)
    assert one.end()


def test_a_cancel_after_the_end_is_ignored():
    one = Cancellation()
    one.enter()
    one.leave()
    assert not one.end()
    one.cancel()
    assert not one.requested


def test_a_cancel_releases_a_sleeping_function_which_then_raises():
    one, sleeper = Cancellation(), threading.Lock()
    sleeper.acquire()
    one.enter()
    assert one.begin_sleep(sleeper)
    one.cancel()
    assert sleeper.acquire(False)
    assert raised(Cancelled, one.end_sleep)
    assert not one.begin_sleep(sleeper)  # a sleep in a `finally` block
