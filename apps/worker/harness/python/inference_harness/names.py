# Contract 1: reads from the source of an entry file how it binds its names. A value alone does not
# tell: a decorated function may name another module as its origin, and an imported object is equal
# to an assigned object.
from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Union

_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Assignment = Union[ast.Assign, ast.AnnAssign]


class Names:
    """The names that an entry file binds at module level."""

    def __init__(self, source: bytes) -> None:
        # By `def`.
        self.functions: set[str] = set()
        # By an assignment.
        self.variables: set[str] = set()
        # The names that a class binds by `def`, by the name of the class.
        self.methods: dict[str, set[str]] = {}
        for node in _statements(ast.parse(source)):
            if isinstance(node, _DEFS):
                self.functions.add(node.name)
            elif isinstance(node, ast.ClassDef):
                methods = self.methods.setdefault(node.name, set())
                methods.update(one.name for one in _statements(node) if isinstance(one, _DEFS))
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self.variables.update(_targets(node))


def _statements(parent: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements of a module or class, also those in `if`, `try` and `with`."""
    open_nodes = [parent]
    while open_nodes:
        for node in ast.iter_child_nodes(open_nodes.pop()):
            yield node
            if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                open_nodes.append(node)


def _targets(node: _Assignment) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                yield name.id
