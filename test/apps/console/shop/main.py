"""Functions that a person tries in the console: typed parameters, streams, files, failures."""

import os
import time
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Iterator, Literal, Optional


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Address:
    street: str
    city: str = "Berlin"


@dataclass
class Item:
    name: str
    count: int = 1


def order(
    customer: str,
    items: list[Item],
    address: Address,
    size: Size = Size.SMALL,
    express: bool = False,
    weight: Optional[float] = None,
    currency: Literal["EUR", "USD"] = "EUR",
) -> dict:
    """Takes an order.

    Args:
        customer: Name of the customer.
        items: The ordered goods.
        weight: Kilograms.
    """
    print(f"order of {customer}")
    count = sum(item.count for item in items)
    return {"customer": customer, "count": count, "city": address.city, "size": size.value, "express": express}


def numbers(n: int, seconds: float = 0.0) -> Iterator[dict]:
    """Yields numbers and prints each.

    Args:
        n: How many.
        seconds: Pause before each number.
    """
    for number in range(n):
        if seconds:
            time.sleep(seconds)
            print(f"number {number}")
        yield {"number": number, "square": number * number}


def gated(gate: str, n: int = 3) -> Iterator[str]:
    """Yields item k when the file <gate>/<k> exists."""
    for k in range(n):
        while not os.path.exists(f"{gate}/{k}"):
            time.sleep(0.01)
        print(f"line {k}")
        yield f"item {k}"


def measure(photo: bytes, label: str = "") -> dict:
    """Measures a file."""
    return {"bytes": len(photo), "label": label}


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63606060000000040001f61738550000000049454e44ae426082"
)


def picture() -> Annotated[bytes, "image/png"]:
    """Returns a picture."""
    return PIXEL


def fails(text: str = "no"):
    """Raises an exception."""
    print("before the failure")
    raise ValueError(text)


def quick(n: int) -> int:
    return n + 1
