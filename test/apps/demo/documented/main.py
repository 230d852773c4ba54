"""Functions whose documents the tests read: typed, untyped, and a generator."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Iterator, Literal, Optional
from uuid import UUID


class Mode(Enum):
    FIT = "fit"
    FILL = "fill"


@dataclass
class Box:
    """A box, and the boxes inside."""

    width: int
    height: int = 1
    inner: Optional[list["Box"]] = None


def resize(image: str, width: int = 640, mode: Mode = Mode.FIT, when: Optional[datetime] = None) -> dict[str, int]:
    """Resizes an image.

    Example:
        {"image": "https://example.com/a.png", "width": 320}

    Args:
        image: URL of the image.
        width: New width in pixels.
    """
    return {"width": width, "mode": len(mode.value)}


def area(box: Box, unit: Literal["cm", "m"] = "cm", ids: Optional[list[UUID]] = None) -> float:
    """Returns the area of a box."""
    return float(box.width * box.height)


def count(upto: Annotated[int, "at most 5"] = 3) -> Iterator[int]:
    """Yields numbers."""
    for number in range(min(upto, 5)):
        yield number


def untyped(name, times=1):
    """Greets by name."""
    return {"greeting": f"Hello, {name}!"}
