# PROTOCOL.md, "From the worker": the limits in `init`.
from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits in bytes."""

    item: int
    # A result, or all items of a run without pacing.
    output: int
    # The printed lines of a run that are not sent yet.
    log: int
