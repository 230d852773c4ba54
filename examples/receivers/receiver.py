"""A webhook receiver: verifies the signature, ignores repeats, prints each delivery. Uses Python's standard library only.

    SECRET=my-secret PORT=8090 python3 receiver.py

SECRET is the value that the caller sent as X-Webhook-Secret.
"""

import hashlib
import hmac
import os
import signal
import sys
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

SECRET = os.environ.get("SECRET", "").encode()
PORT = int(os.environ.get("PORT", "8090"))
LARGEST_BODY = 64 * 1024 * 1024
# An attacker may have recorded an old request and may send it again.
TOLERANCE_S = 300

# A delivery is repeated with the same id if its answer was lost. This set forgets the oldest ids. In production, keep ids in your database.
seen: "OrderedDict[str, None]" = OrderedDict()
seen_lock = Lock()
REMEMBERED = 10_000


def is_genuine(headers, body: bytes) -> bool:
    """X-Service-Webhook-Signature is `v1,` + hex HMAC-SHA256 of `<request id>.<timestamp>.<body>`, over the received bytes of the body."""
    timestamp = headers.get("X-Service-Webhook-Timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > TOLERANCE_S:
        return False
    signed = f"{headers.get('X-Request-Id')}.{timestamp}.".encode() + body
    expected = "v1," + hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
    given = headers.get("X-Service-Webhook-Signature", "")
    # In constant time, so that the duration of the comparison reveals nothing about the signature.
    return hmac.compare_digest(expected.encode(), given.encode())


def is_new(delivery: str) -> bool:
    """Returns true the first time a delivery arrives."""
    with seen_lock:
        if delivery in seen:
            return False
        seen[delivery] = None
        if len(seen) > REMEMBERED:
            seen.popitem(last=False)
        return True


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 15

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            self.close_connection = True
            return self.answer(411 if not length else 413)
        body = self.rfile.read(int(length))
        delivery = self.headers.get("webhook-id", "")
        if not is_genuine(self.headers, body):
            print(f"refused {delivery}: the signature is missing, wrong or too old", flush=True)
            return self.answer(401)
        if is_new(delivery):
            print(f"verified {delivery}: {body.decode()}", flush=True)
        else:
            print(f"repeated {delivery}: already handled", flush=True)
        return self.answer(204)

    def answer(self, status: int):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Disables the log of the HTTP server, because `do_POST` prints each delivery."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"listening on http://127.0.0.1:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
