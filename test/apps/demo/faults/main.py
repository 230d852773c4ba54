"""Functions that fail: invalid output, exceptions, and processes that end."""

import os
import signal
import time


def fine():
    return "fine"


class HTTPException(Exception):
    """An exception with the same fields as FastAPI's."""

    def __init__(self, status_code, detail, headers=None):
        super().__init__(status_code, detail)
        self.status_code = status_code
        self.detail = detail
        self.headers = headers


def raises_status(status, detail="no", headers=None):
    raise HTTPException(status, detail, headers)


def yields_status(status):
    yield {"status_code": status}


def by_position(a, b=2, /):
    return [a, b]


def exits():
    os._exit(3)


def exits_late():
    yield "one"
    time.sleep(0.2)
    os._exit(4)


def signalled():
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(60)


def no_json():
    return {1j}


def no_json_item():
    yield "fine"
    yield b"\xff"


def not_a_number():
    return float("nan")
