"""Local HTTP servers: of any handler, and one that keeps the requests it receives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer


@dataclass
class ReceivedRequests:
    """Address of the server, and the headers and bodies of the requests so far."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Run a server of this machine with a handler, which prints nothing. Yields its port."""
    server = HTTPServer(("127.0.0.1", 0), type("Quiet", (handler,), {"log_message": lambda *_: None}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def http_server(status: int = 200) -> Iterator[ReceivedRequests]:
    """Run a server that answers each POST request with a status."""
    received = ReceivedRequests()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.headers.append(dict(self.headers))
            received.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.end_headers()

    with serve(Handler) as port:
        received.url = f"http://127.0.0.1:{port}/commits"
        yield received
