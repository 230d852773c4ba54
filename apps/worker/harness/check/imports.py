"""Prints, as JSON, the modules that an app's code imports and its interpreter has not: all at once, where Python would name the first only."""

import ast
import importlib.util
import json
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
    """What is imported for certain: not what a `try` may do without, nor what only type checkers read."""

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


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def main(folder):
    sys.path.insert(0, str(folder))
    missing = {}
    for path in code_of(folder):
        try:
            tree = ast.parse(path.read_bytes(), str(path))
        except (SyntaxError, ValueError):
            continue  # starting the app tells of it
        imports = Imports()
        imports.visit(tree)
        for name, line in imports.found:
            top = name.split(".")[0]
            if top not in missing and not is_there(top):
                missing[top] = f"{path.relative_to(folder)}:{line}"
    json.dump([{"module": name, "where": where} for name, where in missing.items()], sys.stdout)


main(Path(sys.argv[1]).resolve())
