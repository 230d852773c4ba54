"""Functions that take forms."""

import os
from typing import BinaryIO


def sizes(files: list[bytes], n: int = 0):
    return [[len(file) for file in files], n]


def spooled(file: BinaryIO):
    path = os.readlink(f"/proc/self/fd/{file.fileno()}")
    return {"size": file.seek(0, os.SEEK_END), "listed": os.path.exists(path), "pid": os.getpid()}


def open_files(pid: int):
    """Returns the number of open files without an entry in a folder."""
    folder = f"/proc/{pid}/fd"
    links = []
    for one in os.listdir(folder):
        try:
            links.append(os.readlink(os.path.join(folder, one)))
        except FileNotFoundError:
            continue  # the descriptor of this listing
    return sum(link.endswith("(deleted)") for link in links if link.startswith("/"))


def number(n: int):
    return n
