"""A custom runtime. The last part of the path names the Python function that answers a POST."""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def pid(_asked):
    return os.getpid()


def kills(asked):
    try:
        os.kill(asked["target"], 9)
    except OSError as error:
        return type(error).__name__
    return "done"


def daemonizes(_asked):
    code = "import subprocess\nprint(subprocess.Popen(['sleep', '600'], env={}, start_new_session=True).pid)"
    middle = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    found = int(middle.stdout.readline())
    middle.wait()
    return found


def grows(asked):
    held = [b"x" * 2**20 for _ in range(asked["mebibytes"])]
    time.sleep(600)
    return len(held)


def ends(_asked):
    os._exit(3)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(None)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.answer(globals()[self.path.rsplit("/", 1)[-1]](json.loads(body)))

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
