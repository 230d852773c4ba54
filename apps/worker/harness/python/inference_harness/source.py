# Contract 1: the app's own modules are compiled from their source at every start. Python's bytecode files are told apart by the second and
# the size: of a file that is saved twice within a second the first text would run, and go on running.
import importlib.machinery as machinery
import os
import sys


class FromSource(machinery.SourceFileLoader):
    """Neither reads nor writes bytecode."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def always_compile(folder):
    """For modules in `folder`. What is installed in an environment within it keeps its bytecode: nobody edits that."""
    finder = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (FromSource, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )

    def hook(path):
        inside = path == folder or path.startswith(folder + os.sep)
        if not inside or "site-packages" in path.split(os.sep):
            raise ImportError(path)
        return finder(path)

    sys.path_hooks.insert(0, hook)
