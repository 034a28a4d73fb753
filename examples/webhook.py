#!/usr/bin/env python3
"""Receives webhooks of DroneFleet and prints them. See docs/webhooks.md.

    WEBHOOK_SECRET=whsec_... python3 webhook.py [PORT]

Python's standard library suffices. In production, put TLS before it and remember the ids in a
database: a message may come again after a restart.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY = 64 * 1024
TOLERANCE = 5 * 60  # seconds between the sender's clock and ours


def problem(secret: str, headers, body: bytes, now: float) -> str:
    """Says what is wrong with a message; "" if it is genuine and new enough."""
    id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not id or not stamp.isdigit():
        return "webhook-id or webhook-timestamp is missing"
    if abs(now - int(stamp)) > TOLERANCE:
        return "webhook-timestamp is too far from now"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = hmac.new(key, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(mac).decode()
    given = headers.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(expected.encode(), one.encode()) for one in given):
        return "webhook-signature does not match"
    return ""


class Receiver(BaseHTTPRequestHandler):
    secret = ""
    seen: set[str] = set()
    timeout = 10

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            return self.answer(413, "give a Content-Length of at most 65536")
        body = self.rfile.read(int(length))
        wrong = problem(self.secret, self.headers, body, time.time())
        if wrong:
            return self.answer(400, wrong)
        id = self.headers["webhook-id"]
        if id not in self.seen:  # else it comes again
            self.tell(json.loads(body))
            self.seen.add(id)
        self.answer(204)

    def tell(self, message):
        data = message["data"]
        print(message["type"], data.get("orderId", "-"), data.get("reason", ""), flush=True)

    def answer(self, status: int, text: str = ""):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def main():
    p = argparse.ArgumentParser(description="Receives webhooks of DroneFleet and prints them. WEBHOOK_SECRET is what they are signed with.")
    p.add_argument("port", nargs="?", type=int, default=9000, help="0 for a free one (default: %(default)s)")
    args = p.parse_args()
    Receiver.secret = os.environ.get("WEBHOOK_SECRET", "")
    if not Receiver.secret.startswith("whsec_"):
        sys.exit("WEBHOOK_SECRET is missing; set it to what \"statemanager webhooks apply\" has shown")
    server = ThreadingHTTPServer(("127.0.0.1", args.port), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
