"""Functions that end badly: by their output, or with their process."""

import os
import signal
import time


def fine():
    return "fine"


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
    return {1, 2}


def no_json_item():
    yield "fine"
    yield b"\x00"


def not_a_number():
    return float("nan")
