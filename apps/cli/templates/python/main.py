"""The app's functions. Every public function is callable: POST /v4/<project>/<app>/<function>."""

import time
from typing import Iterator


def greet(name: str = "world") -> dict[str, str]:
    """Returns a greeting: one answer."""
    return {"greeting": f"Hello, {name}!"}


def count(upper_range: int = 3) -> Iterator[str]:
    """Yields numbers: a caller of a stream receives each item at once."""
    for number in range(upper_range):
        yield f"Number {number}"
        time.sleep(0.2)
