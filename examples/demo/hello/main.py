"""A first app. The folders name the project (demo) and the app (hello). Callers can call every public function over HTTP.

    POST /v4/demo/hello/run    {"upper_range": 5}

Save a change to this file while `npm start` runs: the next call has it.
"""

import asyncio
import time


def run(upper_range: int):
    """Yields one line a second. A caller that asks for a stream gets each line immediately. Other callers get a list at the end."""
    for number in range(upper_range):
        yield f"Number {number}"
        time.sleep(1)


async def count(upper_range: int = 3, pause: float = 0.5):
    """Yields objects from an async generator. They arrive as JSON."""
    for number in range(upper_range):
        yield {"number": number, "square": number * number}
        await asyncio.sleep(pause)


def greet(name: str, punctuation: str = "!"):
    """Returns its result like a plain function."""
    return {"greeting": f"Hello, {name}{punctuation}"}


def fail(message: str = "this function always fails"):
    """Fails: the caller gets status 500 with this text, and the traceback is logged."""
    raise ValueError(message)


def _not_public():
    """Cannot be called from outside, because its name starts with an underscore."""
