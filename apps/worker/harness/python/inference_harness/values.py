# PROTOCOL.md, "A run": distinguishes streams and awaitables from plain results, and closes them.
import inspect
import traceback

from .jsonable import converter_of
from .output import PLAIN

# Iterable types that count as plain results. Other values are plain if they have a converter.
VALUE_KINDS = (str, dict, list, tuple)


def is_async(value: object) -> bool:
    """Returns whether a task has to run the value."""
    return type(value) not in PLAIN and (is_async_stream(value) or inspect.isawaitable(value))


def is_async_stream(value: object) -> bool:
    """Returns whether the value yields items to `async for`."""
    return hasattr(value, "__anext__") or hasattr(value, "__aiter__")


def is_stream(value: object) -> bool:
    """Returns whether the value yields items to `for`.

    A model, dataclass or array is one value, although it can be iterated."""
    if type(value) in PLAIN or isinstance(value, VALUE_KINDS):
        return False
    if hasattr(value, "__next__"):
        return True
    return hasattr(value, "__iter__") and converter_of(type(value)) is None


def close(value: object) -> None:
    """Closes a generator or coroutine in its own thread. This runs the `finally` blocks."""
    method = getattr(value, "close", None)
    if method is None:
        return
    try:
        method()
    except BaseException:
        traceback.print_exc()
