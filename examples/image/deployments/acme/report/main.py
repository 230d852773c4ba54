"""An app with a dependency from PyPI (requirements.txt) and a system package (figlet). Its image contains both."""

import subprocess

from tabulate import tabulate


def table(rows: list, headers: list) -> str:
    return tabulate(rows, headers=headers, tablefmt="github")


def banner(text: str):
    """Yields the lines of a banner, one line in each item."""
    drawn = subprocess.run(["figlet", "--", text], capture_output=True, text=True, check=True)
    yield from drawn.stdout.splitlines()
