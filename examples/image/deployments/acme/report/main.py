"""An app with a dependency from PyPI (requirements.txt) and one of the system (figlet): both come with its image."""

import subprocess

from tabulate import tabulate


def table(rows: list, headers: list) -> str:
    return tabulate(rows, headers=headers, tablefmt="github")


def banner(text: str):
    """The lines of a banner, one item each."""
    drawn = subprocess.run(["figlet", "--", text], capture_output=True, text=True, check=True)
    yield from drawn.stdout.splitlines()
