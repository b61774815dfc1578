"""A stand-in for the hub on loopback, with the faults that hubs and networks have."""

import threading
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Hub(ThreadingHTTPServer):
    """Serves `contents` by path in the repository.

    `faults` holds a list of faults for a path, each used up by one request; `always` one fault for
    every request. Faults: cut (half of what is left is sent), stall, slow, wrong, short, long,
    busy, missing, forbidden, redirect, other-range, unknown-range.
    """

    daemon_threads = True

    def __init__(self, contents):
        super().__init__(("127.0.0.1", 0), HubRequest)
        self.contents = contents
        self.faults = {}
        self.always = {}
        self.has_ranges = True
        self.has_lengths = True
        self.requests = []
        self.sent = Counter()
        self.release = threading.Event()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """A client that leaves is no news."""


class HubRequest(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_args):
        pass

    def do_GET(self):
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        path = query["FilePath"][0] if query else parts.path.split("/", 5)[-1]
        self.server.requests.append((self.path, self.headers.get("range")))
        faults = self.server.faults.get(path)
        fault = self.server.always.get(path) or (faults.pop(0) if faults else None)
        statuses = {"busy": 503, "missing": 404, "forbidden": 403, "unknown-range": 416}
        if fault in statuses:
            self.send_response(statuses[fault])
            self.send_header("content-length", "0")
            self.end_headers()
        elif fault == "redirect":
            self.send_response(302)
            self.send_header("location", f"/elsewhere/1/2/3/{path}")
            self.send_header("content-length", "0")
            self.end_headers()
        else:
            self.send_file(path, fault)

    def send_file(self, path, fault):
        data = self.server.contents[path]
        if fault == "wrong":
            data = bytes(byte ^ 1 for byte in data)
        elif fault == "short":
            data = data[:-1]
        elif fault == "long":
            data += b"\0"
        asked = self.headers.get("range")
        begin = int(asked[6:-1]) if asked and self.server.has_ranges else 0
        if fault == "other-range":
            begin = min(begin + 10, len(data) - 1)
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("content-range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        if self.server.has_lengths:
            self.send_header("content-length", str(len(data) - begin))
        self.end_headers()
        self.send_body(path, data[begin:], fault)

    def send_body(self, path, body, fault):
        if fault in {"cut", "stall"}:
            body = body[: len(body) // 2]
        step = 1_000 if fault == "slow" else len(body) or 1
        for at in range(0, len(body), step):
            self.wfile.write(body[at : at + step])
            self.server.sent[path] += len(body[at : at + step])
            if fault == "slow":
                time.sleep(0.01)
        if fault == "stall":
            self.wfile.flush()
            self.server.release.wait(5)


@contextmanager
def serve_hub(contents):
    hub = Hub(contents)
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.release.set()
        hub.shutdown()
        hub.server_close()
        thread.join()
