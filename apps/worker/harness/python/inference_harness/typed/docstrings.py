# Contract 1, "Parameters and types": docstrings in Google, NumPy or reST style.
from __future__ import annotations

import inspect
import re
from typing import NamedTuple

SUMMARY_LIMIT = 200
# The longest description of a function or of a parameter.
DESCRIPTION_LIMIT = 4000

_PARAMETERS = frozenset(
    ("args", "arguments", "parameters", "params", "keyword args", "other parameters")
)
_RESULTS = frozenset(("returns", "return", "yields", "yield"))
_OTHERS = frozenset(
    (
        "raises",
        "example",
        "examples",
        "note",
        "notes",
        "see also",
        "references",
        "warns",
        "attributes",
    )
)
# `name : type` of NumPy's style.
_NUMPY = re.compile(r"\*{0,2}(\w+(?:,\s*\*{0,2}\w+)*)\s*(?::.*)?")
# Fields of the reST style: `:param type name: text`.
_REST = frozenset(("param", "parameter", "arg", "argument", "keyword"))
_REST_OTHERS = frozenset(
    ("type", "return", "returns", "rtype", "raise", "raises", "yield", "yields", "ytype", "meta")
)


class Docstring(NamedTuple):
    """The parts of a docstring."""

    summary: str
    description: str
    # Descriptions by the names of parameters.
    parameters: dict[str, str]


def parsed(text: str | None) -> Docstring:
    """Returns the parts of a docstring. Unknown styles are description."""
    lines = inspect.cleandoc(text or "").split("\n")
    parameters: dict[str, str] = {}
    rest: list[str] = []
    at = 0
    while at < len(lines):
        section, begin = _section(lines, at)
        if section is not None:
            end = _end_of_section(lines, begin, underlined=begin == at + 2)
            if section in _PARAMETERS:
                numpy = begin == at + 2
                parameters.update((_numpy if numpy else _google)(lines[begin:end]))
            elif section not in _RESULTS:
                rest += lines[at:end]
            at = end
            continue
        field, name, text = _field(lines[at])
        if field:
            end = at + 1
            while end < len(lines) and lines[end][:1] in (" ", "\t"):
                end += 1
            if name:
                parameters[name] = _joined([text, *lines[at + 1 : end]])
            at = end
            continue
        rest.append(lines[at])
        at += 1
    summary, _, description = "\n".join(rest).strip().partition("\n\n")
    return Docstring(
        " ".join(summary.split())[:SUMMARY_LIMIT],
        description.strip()[:DESCRIPTION_LIMIT],
        {name: one for name, one in parameters.items() if one},
    )


def _field(line: str) -> tuple[bool, str, str]:
    """Returns whether a line begins a field of the reST style, its parameter and its text."""
    begin, head, text = ("", "", "") if line.count(":") < 2 else line.split(":", 2)
    words = head.split()
    if begin or not words:
        return False, "", ""
    if words[0] in _REST and len(words) > 1:
        return True, words[-1].lstrip("*"), text
    return words[0] in _REST_OTHERS, "", ""


def _entry(line: str) -> tuple[str, str]:
    """Returns the name and the text of `name (type): text`, or empty texts."""
    head, colon, text = line.partition(":")
    if "(" in head and ")" not in head:  # a colon inside the type
        head, colon, text = line.partition("):")
    name = head.partition("(")[0].strip().lstrip("*")
    return (name, text) if colon and name.isidentifier() else ("", "")


def _section(lines: list[str], at: int) -> tuple[str | None, int]:
    """Returns the name of the section that begins at a line, and the number of its first line."""
    line = lines[at].strip()
    following = lines[at + 1].strip() if at + 1 < len(lines) else ""
    known = _PARAMETERS | _RESULTS | _OTHERS
    if lines[at][:1] not in (" ", "\t"):
        if len(following) >= 3 and not following.strip("-=") and line.lower() in known:
            return line.lower(), at + 2
        if line.endswith(":") and line[:-1].lower() in known:
            return line[:-1].lower(), at + 1
    return None, at


def _end_of_section(lines: list[str], begin: int, underlined: bool) -> int:
    """Returns the number of the first line after a section."""
    end = begin
    while end < len(lines):
        if _section(lines, end)[0] is not None:
            return end
        indented = not lines[end].strip() or lines[end][:1] in (" ", "\t")
        if not indented and not underlined:
            return end
        end += 1
    return end


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    filled = [line for line in lines if line.strip()]
    if not filled:
        return {}
    depth = min(_depth(line) for line in filled)
    texts: list[str] = []
    for line in filled:
        name, text = _entry(line.strip()) if _depth(line) == depth else ("", "")
        if name:
            texts = found.setdefault(name, [text])
        else:
            texts.append(line)
    return {name: _joined(texts) for name, texts in found.items()}


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    texts: list[str] = []
    for line in lines:
        entry = _NUMPY.fullmatch(line) if line.strip() and not _depth(line) else None
        if entry:
            texts = []
            for name in entry[1].split(","):
                found[name.strip(" *")] = texts
        elif line.strip():
            texts.append(line)
    return {name: _joined(texts) for name, texts in found.items()}


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())[:DESCRIPTION_LIMIT]
