"""Contract 7, `check`: prints, as JSON, every module that an app imports and its interpreter cannot find. Python reports only the first."""

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path

SKIPPED = ("node_modules", "__pycache__")


def code_of(folder):
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts[:-1]
        if any(part in SKIPPED or part.startswith(".") for part in parts):
            continue
        if any((folder.joinpath(*parts[: at + 1]) / "pyvenv.cfg").exists() for at in range(len(parts))):
            continue
        yield path


class Imports(ast.NodeVisitor):
    """Collects the imports that certainly run. Leaves out imports inside a `try`, and imports that only type checkers read."""

    def __init__(self):
        self.found = []

    def visit_Import(self, node):
        self.found += [(alias.name, node.lineno) for alias in node.names]

    def visit_ImportFrom(self, node):
        if node.level == 0 and node.module:
            self.found.append((node.module, node.lineno))

    def visit_Try(self, node):
        for part in node.orelse + node.finalbody:
            self.visit(part)

    def visit_If(self, node):
        if "TYPE_CHECKING" not in ast.dump(node.test):
            self.generic_visit(node)


class Code:
    """An app's folder, and the folders in which Python searches for its modules."""

    def __init__(self, folder, words):
        self._folder = folder
        tokens = [token for word in words for token in re.split(r"[\s=]+", word) if token]
        places = [folder / token for token in tokens]
        self.bases = [folder, *(place for place in places if place.is_dir() and folder in place.parents)]
        self._trees = {path: parsed(path) for path in code_of(folder)}
        # A script may have no suffix.
        scripts = {place: parsed(place) for place in places if place.is_file() and place not in self._trees}
        self._trees.update({place: tree for place, tree in scripts.items() if tree is not None})
        self._roots = [path for token in tokens for path in self._named(token.split(":")[0])]
        # Python searches a script's own folder first.
        self.bases += [root.parent for root in self._roots]

    def trees(self):
        return ((path, tree) for path, tree in self._trees.items() if tree is not None)

    def imported(self):
        """Returns the files that the start imports, directly or indirectly, including imports inside a `try`."""
        found = set()
        search = list(self._roots)
        while search:
            path = search.pop()
            if path in found:
                continue
            found.add(path)
            for node in ast.walk(self._trees[path] or ast.Module([], [])):
                search += self._imports(path, node)
        return found

    def _named(self, token):
        """Returns the files that a word of a command names: `server.py`, `./serve`, `main:app`, `package.module`."""
        files = self._present([self._folder / token])
        if files or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", token):
            return files
        return self._module(self.bases, token.split("."))

    def _imports(self, path, node):
        if isinstance(node, ast.Import):
            return [file for alias in node.names for file in self._module(self.bases, alias.name.split("."))]
        if not isinstance(node, ast.ImportFrom):
            return []
        bases = self.bases if node.level == 0 else [path.parents[node.level - 1]]
        parts = node.module.split(".") if node.module else []
        return [file for alias in node.names for file in self._module(bases, [*parts, alias.name])]

    def _module(self, bases, parts):
        """Returns the files that an import of a dotted name executes: each package on the way, and the module."""
        found = []
        for base in bases:
            for length in range(1, len(parts) + 1):
                place = base.joinpath(*parts[:length])
                found += self._present([place.with_name(place.name + ".py"), place / "__init__.py", place / "__main__.py"])
        return found

    def _present(self, paths):
        return [path for path in paths if path in self._trees]


def parsed(path):
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError):
        return None  # the start of the app reports the syntax error


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def main(folder, words):
    """Prints the missing modules. `words` name what starts: the entry point, or a server's command."""
    code = Code(folder, words)
    sys.path[:0] = [str(base) for base in code.bases]
    imported = code.imported()
    missing = {}
    for path, tree in code.trees():
        imports = Imports()
        imports.visit(tree)
        for name, line in imports.found:
            top = name.split(".")[0]
            known = missing.get(top)
            if (known is None or (path in imported and not known["imported"])) and not is_there(top):
                where = f"{path.relative_to(folder)}:{line}"
                missing[top] = {"module": top, "where": where, "imported": path in imported}
    json.dump(list(missing.values()), sys.stdout)


main(Path(sys.argv[1]).resolve(), sys.argv[2:])
