# PROTOCOL.md, "Threads": what a thread of functions knows about itself.
from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .interrupt import ThreadInterrupt
    from .run import Run


class Here(threading.local):
    """The state of the calling thread."""

    def __init__(self) -> None:
        # The run whose function this thread executes.
        self.run: Run | None = None
        # Interrupts functions in this thread. None: this thread executes no functions.
        self.interrupt: ThreadInterrupt | None = None
        # Locked. Another thread releases it when this thread's run may send further items.
        self.gate = threading.Lock()
        self.gate.acquire()


here = Here()
