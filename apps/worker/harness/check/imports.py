# Contract 7, `check`: prints, as JSON, every module that an app imports and its interpreter cannot
# find. Python reports only the first.
from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict


class Missing(TypedDict):
    """A module that the interpreter cannot find, and its first import."""

    module: str
    where: str
    # Whether the start of the app runs this import.
    imported: bool


SKIPPED = ("node_modules", "__pycache__")


def code_of(folder: Path) -> Iterator[Path]:
    """Yields the app's Python files, without those of packages and environments."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts[:-1]
        if any(part in SKIPPED or part.startswith(".") for part in parts):
            continue
        above = [folder.joinpath(*parts[: at + 1]) for at in range(len(parts))]
        if any((one / "pyvenv.cfg").exists() for one in above):
            continue
        yield path


class Imports(ast.NodeVisitor):
    """Collects the imports that certainly run.

    Leaves out imports inside a `try`, and imports that only type checkers read."""

    def __init__(self) -> None:
        # (module, line)
        self.found: list[tuple[str, int]] = []

    def visit_Import(self, node: ast.Import) -> None:
        """Collects `import a, b`."""
        self.found += [(alias.name, node.lineno) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Collects `from a import b`."""
        if node.level == 0 and node.module:
            self.found.append((node.module, node.lineno))

    def visit_Try(self, node: ast.Try) -> None:
        """Looks only into `else` and `finally`."""
        for part in node.orelse + node.finalbody:
            self.visit(part)

    def visit_If(self, node: ast.If) -> None:
        """Looks into the statement, except for `if TYPE_CHECKING`."""
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.generic_visit(node)


class Code:
    """An app's folder, and the folders in which Python searches for its modules."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._folder = folder
        tokens = [token for word in words for token in re.split(r"[\s=]+", word) if token]
        places = [folder / token for token in tokens]
        folders = [place for place in places if place.is_dir() and folder in place.parents]
        self.bases = [folder, *folders]
        self._trees = {path: parsed(path) for path in code_of(folder)}
        # A script may have no suffix.
        for place in places:
            if place not in self._trees and place.is_file():
                tree = parsed(place)
                if tree is not None:
                    self._trees[place] = tree
        self._roots = [path for token in tokens for path in self._named(token.split(":")[0])]
        # Python searches a script's own folder first.
        self.bases += [root.parent for root in self._roots]

    def trees(self) -> Iterator[tuple[Path, ast.Module]]:
        """Yields the files that Python can parse."""
        return ((path, tree) for path, tree in self._trees.items() if tree is not None)

    def imported(self) -> set[Path]:
        """Returns the files that the start imports, directly or indirectly.

        Includes imports inside a `try`."""
        found: set[Path] = set()
        search = list(self._roots)
        while search:
            path = search.pop()
            if path in found:
                continue
            found.add(path)
            for node in ast.walk(self._trees[path] or ast.Module([], [])):
                search += self._imports(path, node)
        return found

    def _named(self, token: str) -> list[Path]:
        """Returns the files that a word of a command names.

        A word is `server.py`, `./serve`, `main:app` or `package.module`."""
        files = self._present([self._folder / token])
        if files or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", token):
            return files
        return self._module(self.bases, token.split("."))

    def _imports(self, path: Path, node: ast.AST) -> list[Path]:
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            return [file for name in names for file in self._module(self.bases, name)]
        if not isinstance(node, ast.ImportFrom):
            return []
        bases = self.bases if node.level == 0 else [path.parents[node.level - 1]]
        parts = node.module.split(".") if node.module else []
        names = [[*parts, alias.name] for alias in node.names]
        return [file for name in names for file in self._module(bases, name)]

    def _module(self, bases: list[Path], parts: list[str]) -> list[Path]:
        """Returns the files that an import of a dotted name executes.

        These are each package on the way, and the module."""
        found: list[Path] = []
        for base in bases:
            for length in range(1, len(parts) + 1):
                place = base.joinpath(*parts[:length])
                inside = [place / "__init__.py", place / "__main__.py"]
                found += self._present([place.with_name(place.name + ".py"), *inside])
        return found

    def _present(self, paths: list[Path]) -> list[Path]:
        return [path for path in paths if path in self._trees]


def parsed(path: Path) -> ast.Module | None:
    """Returns the file's syntax tree, or None if Python cannot parse the file."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError):
        return None  # the start of the app reports the syntax error


def is_there(name: str) -> bool:
    """Returns whether the interpreter finds the module."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def main(folder: Path, words: list[str]) -> None:
    """Prints the missing modules.

    `words` name what starts: the entry point, or a server's command."""
    code = Code(folder, words)
    sys.path[:0] = [str(base) for base in code.bases]
    imported = code.imported()
    missing: dict[str, Missing] = {}
    for path, tree in code.trees():
        imports = Imports()
        imports.visit(tree)
        for name, line in imports.found:
            top = name.split(".")[0]
            known = missing.get(top)
            better = known is None or (path in imported and not known["imported"])
            if better and not is_there(top):
                where = f"{path.relative_to(folder)}:{line}"
                missing[top] = {"module": top, "where": where, "imported": path in imported}
    json.dump(list(missing.values()), sys.stdout)


main(Path(sys.argv[1]).resolve(), sys.argv[2:])
