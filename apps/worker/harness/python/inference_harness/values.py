# PROTOCOL.md, "A run": distinguishes streams and awaitables from plain results, and closes them.
import inspect
import traceback

from .output import BINARY_KINDS

# Iterable types that count as plain results.
VALUE_KINDS = (str, dict, list, tuple, set, frozenset, *BINARY_KINDS)
PLAIN = frozenset((str, dict, list, tuple, int, float, bool, type(None)))


def is_async(value: object) -> bool:
    """Returns whether a task has to run the value."""
    return type(value) not in PLAIN and (is_async_stream(value) or inspect.isawaitable(value))


def is_async_stream(value: object) -> bool:
    """Returns whether the value yields items to `async for`."""
    return hasattr(value, "__anext__") or hasattr(value, "__aiter__")


def is_stream(value: object) -> bool:
    """Returns whether the value yields items to `for`."""
    if type(value) in PLAIN or isinstance(value, VALUE_KINDS):
        return False
    return hasattr(value, "__next__") or hasattr(value, "__iter__")


def close(value: object) -> None:
    """Closes a generator or coroutine in its own thread. This runs the `finally` blocks."""
    method = getattr(value, "close", None)
    if method is None:
        return
    try:
        method()
    except BaseException:
        traceback.print_exc()
