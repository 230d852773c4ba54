# Contract 1, "Parameters and types": the violations of a value, with their positions.
from __future__ import annotations

from typing import Any, NamedTuple, Union

# The most violations that one answer reports.
VIOLATIONS_LIMIT = 20
# The caller controls the length of a key.
KEY_LIMIT = 200

Key = Union[str, int]


class Violation(NamedTuple):
    """The position of a wrong value, the violated rule and a text."""

    loc: tuple[Key, ...]
    kind: str
    text: str

    def detail(self) -> dict[str, Any]:
        """Returns the violation in the form of contract 1."""
        keys = [key[:KEY_LIMIT] if isinstance(key, str) else key for key in self.loc]
        return {"loc": ["body", *keys], "msg": self.text, "type": self.kind}


class Mismatch(Exception):
    """Reports a value that its annotation does not accept."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__(violations)
        self.violations = violations


def mismatch(kind: str, text: str, *loc: Key) -> Mismatch:
    """Returns a Mismatch with one violation."""
    return Mismatch([Violation(loc, kind, text)])


class Violations:
    """Collects the violations of a container."""

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, key: Key, error: Mismatch) -> None:
        """Adds the violations of one member. Raises Mismatch if no further violation fits."""
        self.found += [Violation((key, *one.loc), one.kind, one.text) for one in error.violations]
        if len(self.found) >= VIOLATIONS_LIMIT:
            raise Mismatch(self.found[:VIOLATIONS_LIMIT])

    def check(self) -> None:
        """Raises Mismatch if there are violations."""
        if self.found:
            raise Mismatch(self.found)
