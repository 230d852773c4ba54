# Contract 1: compiles an app's modules from their source at every start. Python identifies
# bytecode by modification second and size. After two saves of equal size within a second, Python
# could run the bytecode of the first save, at every later start too.
from __future__ import annotations

import importlib.machinery as machinery
import os
import sys
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.importlib import PathEntryFinderProtocol as PathEntryFinder


class FromSource(machinery.SourceFileLoader):
    """Loads source files. Neither reads nor writes bytecode."""

    def get_code(self, fullname: str) -> CodeType:
        """Compiles the module's source."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def always_compile(folder: str) -> None:
    """Loads the modules in `folder` from source.

    Installed packages of an environment there keep their bytecode, because packages are not
    edited."""
    finder = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (FromSource, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )

    def hook(path: str) -> PathEntryFinder:
        inside = path == folder or path.startswith(folder + os.sep)
        if not inside or "site-packages" in path.split(os.sep):
            raise ImportError(path)
        return finder(path)

    sys.path_hooks.insert(0, hook)
