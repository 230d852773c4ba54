"""Functions that answer with bytes of a media type."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated


def image(size: int) -> Annotated[bytes, "image/png"]:
    return bytes(range(256)) * (size // 256)


def sound(pieces: int) -> Iterator[Annotated[bytes, "audio/mpeg"]]:
    for number in range(pieces):
        yield bytes([number, 0xFF, 0x0A, 0x0D])


async def video(pieces: int) -> AsyncIterator[Annotated[bytes, "video/mp4"]]:
    for number in range(pieces):
        yield b""
        yield bytes([number, 0])


def waits(path: str) -> Iterator[Annotated[bytes, "audio/mpeg"]]:
    yield b"first"
    while not os.path.exists(path):
        time.sleep(0.01)
    yield b"second"


def breaks(at: int) -> Iterator[Annotated[bytes, "audio/mpeg"]]:
    for _ in range(at):
        yield b"piece"
    raise ValueError("broken")


def other() -> Annotated[bytes, "image/png"]:
    return {"status_code": 404, "detail": "no image"}


def wrong() -> Iterator[Annotated[bytes, "image/png"]]:
    yield "text"
