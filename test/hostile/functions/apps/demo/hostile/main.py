"""Functions that are careless or hostile. Each has a limit of count, size or time, or runs until it is stopped."""

import os
import shutil
import socket
import subprocess
import sys
import time

_leaked = []


def pid():
    return os.getpid()


def ticks(n):
    for i in range(n):
        yield i
        time.sleep(0.05)


def ends():
    os._exit(3)


# -- processes ----------------------------------------------------------------------------------------------------------------------


def bursts(count):
    return [subprocess.Popen(["sleep", "600"]).pid for _ in range(count)]


def leaves_the_pipes():
    """Starts a child that inherits the pipes and outlives this process."""
    yield subprocess.Popen(["sleep", "600"], close_fds=False).pid
    time.sleep(0.1)
    os._exit(3)


def daemonizes():
    """Starts a daemon: forked twice, in a new session, without environment, ignoring SIGTERM."""
    code = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    script = f"import subprocess\nprint(subprocess.Popen([{sys.executable!r}, '-c', {code!r}], env={{}}, start_new_session=True).pid)"
    middle = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    found = int(middle.stdout.readline())
    middle.wait()
    return found


def parents():
    """Returns the pids of the ancestors of this process, the nearest first."""
    found, at = [], os.getpid()
    while at > 1:
        with open(f"/proc/{at}/status") as file:
            at = next(int(line.split()[1]) for line in file if line.startswith("PPid:"))
        found.append(at)
    return found


def kills(target, number=9):
    try:
        os.kill(target, number)
    except OSError as error:
        return type(error).__name__
    time.sleep(2)  # if the signal ended this process, the next line is not reached
    return "done"


# -- files --------------------------------------------------------------------------------------------------------------------------


def leaks_files():
    while True:
        _leaked.append(os.open(os.devnull, os.O_RDONLY))


# -- prints until the run is stopped ----------------------------------------------------------------------------------------------------


def prints_lines():
    while True:
        print("one more line of many")


def prints_one_line():
    text = "x" * 65536
    while True:
        print(text, end="")


def prints_binary():
    data = os.urandom(65536)
    while True:
        os.write(1, data)


def prints_by_a_child():
    subprocess.run(["cat", "/dev/zero"])


# -- access to resources of others ---------------------------------------------------------------------------------------------------


def closes(first, last):
    yield "before"
    time.sleep(0.1)
    os.closerange(first, last)
    time.sleep(1)


def closes_one(fd):
    os.close(fd)


def scribbles(first, last):
    yield "before"
    time.sleep(0.1)
    for fd in range(first, last):
        try:
            os.write(fd, b"\x00rubbish\n")
        except OSError:
            pass
    time.sleep(1)


def scribbles_one(fd):
    os.write(fd, b"\x00rubbish\n")


def goes_to(folder):
    os.chdir(folder)


def where():
    return os.getcwd()


def deletes_itself():
    shutil.rmtree(os.path.dirname(os.path.abspath(__file__)))


def listens(port):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()


def reads(path):
    with open(path, "rb") as file:
        return file.read(65536).decode("latin-1")


def environment():
    return dict(os.environ)


def writes(path, text):
    with open(path, "w") as file:
        file.write(text)
