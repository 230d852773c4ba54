# Runs the harness's own tests without further packages: `python3 apps/worker/harness/python/tests`.
# Every function `test_…` in a file `test_….py` is a test. Arguments name the only files to run.
# `--list` prints the names. Otherwise each test prints a line of JSON: `name`, `failure` or null.
# The exit code is 1 if a test failed. pytest runs the same files.
import importlib
import json
import os
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))  # conftest.py does the same for pytest


def tests_of(file):
    """Returns the tests of a file by their names."""
    module = importlib.import_module(file)
    return {
        f"{file}: {name[len('test_') :].replace('_', ' ')}": value
        for name, value in vars(module).items()
        if name.startswith("test_") and callable(value)
    }


def failure_of(test):
    """Runs a test. Returns None, or the traceback of its failure."""
    try:
        test()
    except BaseException:
        return traceback.format_exc()
    return None


def run(file):
    """Runs the tests of a file. Returns the exit code."""
    code = 0
    for name, test in tests_of(file).items():
        failure = failure_of(test)
        print(json.dumps({"name": name, "failure": failure}), flush=True)
        if failure is not None:
            code = 1
    return code


def main(arguments):
    """Returns the exit code."""
    names = sorted(os.path.splitext(name)[0] for name in os.listdir(HERE) if name[:5] == "test_")
    if arguments == ["--list"]:
        print(json.dumps([name for file in names for name in tests_of(file)]))
        return 0
    if len(arguments) == 1:
        return run(arguments[0])
    # Each file has its own process. On Python 3.11, a withdrawn exception (test_produce.py) leaves
    # a flag that makes the tracing of instructions (test_ticker.py) hang.
    command = [sys.executable, HERE]
    return max(subprocess.call([*command, file]) for file in arguments or names)


sys.exit(main(sys.argv[1:]))
