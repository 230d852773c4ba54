"""A first app. The folder is the project (demo) and the app (hello); every function here can be called over HTTP.

    POST /v4/demo/hello/run    {"upper_range": 5}

Save a change to this file while `npm start` runs: the next call has it.
"""

import asyncio
import time


def run(upper_range: int):
    """Yields one line a second. Whoever asked for a stream gets each line as it is yielded; others get the list at the end."""
    for number in range(upper_range):
        yield f"Number {number}"
        time.sleep(1)


async def count(upper_range: int = 3, pause: float = 0.5):
    """The same as an async generator, yielding objects: they arrive as JSON."""
    for number in range(upper_range):
        yield {"number": number, "square": number * number}
        await asyncio.sleep(pause)


def greet(name: str, punctuation: str = "!"):
    """A plain function: what it returns is the result."""
    return {"greeting": f"Hello, {name}{punctuation}"}


def fail(message: str = "this function always fails"):
    """The caller gets status 500 with this text; the traceback goes to the logs."""
    raise ValueError(message)


def _not_public():
    """A name that starts with an underscore cannot be called from outside."""
