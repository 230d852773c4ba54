# Contract 2, "HTTP status of a result": functions that return or yield bytes of a declared media
# type, such as `-> Annotated[bytes, "image/png"]`.
from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Generator, Iterable
from typing import Callable, cast

from .channel import Channel
from .items import Items
from .output import Unserializable
from .run import Run
from .typed.hints import code_of, hints_of, kind_of, output_of

# RFC 9110, section 8.3.1, with parameters.
MEDIA_TYPE = re.compile(r"\A[\w.+-]+/[\w.+-]+(?:; ?[\w.-]+=[\w.+-]+)?\Z", re.ASCII)
LENGTH_LIMIT = 80

BYTES_KINDS = (bytes, bytearray, memoryview)


def media_of(call: Callable[..., object]) -> str | None:
    """Returns the media type that a function declares for its bytes, or None."""
    try:
        code = code_of(call)
        hints = hints_of(code, inspect.signature(call))
        annotation = output_of(kind_of(code, hints), hints)
    except Exception:  # the annotations are an app's code
        return None
    if typing.get_origin(annotation) is not typing.Annotated:
        return None
    kind, *notes = typing.get_args(annotation)
    if kind not in BYTES_KINDS:
        return None
    named = [one for one in notes if isinstance(one, str) and _is_media(one)]
    return named[0] if named else None


def _is_media(text: str) -> bool:
    return len(text) <= LENGTH_LIMIT and MEDIA_TYPE.match(text) is not None


def produce_bytes(
    run: Run,
    items: Items,
    source: Iterable[object],
    channel: Channel,
    refilled: bool = False,
) -> Generator[bool, None, None]:
    """Sends the pieces of a body, each at once. Is driven like `produce`."""
    while True:
        for item in source:
            if not isinstance(item, BYTES_KINDS):
                kind = type(item).__name__
                raise Unserializable(
                    f"item: {kind} is not bytes, but the media type is {run.media}"
                )
            piece = bytes(cast("bytes", item))
            if piece:
                run.cancellation.leave()
                if not run.cancellation.requested:
                    items.send_bytes(piece, run.printed)
                    channel.flush()
                yield True
                run.cancellation.enter()
                items.check_overflow()
            if refilled:
                yield False
        if not refilled:
            return
