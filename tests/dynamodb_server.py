"""A DynamoDB server for tests: moto's, with conditional requests that are atomic.

moto checks the condition of a request and changes the item in two steps, so two requests at once could both succeed.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

CREDENTIALS = {"aws_access_key_id": "test-id", "aws_secret_access_key": "test-secret"}

Respond = Callable[[Any], Any]


class DynamoDbServer:
    """A running server. ``respond`` may be replaced to change the responses to ``put_item``, ``update_item``,
    ``delete_item`` and ``get_item``: it gets the name of the request and a function that gives the response."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.requests: list[str] = []
        self.respond: Callable[[str, Callable[[], Any]], Any] = _respond

    @functools.cached_property
    def client(self) -> Any:
        """Amazon's own client."""
        import boto3

        return boto3.client("dynamodb", endpoint_url=self.endpoint, region_name="us-east-1", **CREDENTIALS)

    @contextmanager
    def responding(self, respond: Callable[[str, Callable[[], Any]], Any]) -> Iterator[None]:
        """Change the responses while the block runs."""
        self.respond = respond
        try:
            yield
        finally:
            self.respond = _respond


def _respond(_: str, response: Callable[[], Any]) -> Any:
    return response()


@contextmanager
def dynamodb_server() -> Iterator[DynamoDbServer]:
    """Start a server on a free port, and stop it at the end."""
    from moto.dynamodb.responses import DynamoHandler
    from moto.server import ThreadedMotoServer

    one_at_a_time = threading.Lock()
    running: list[DynamoDbServer] = []
    originals = {name: getattr(DynamoHandler, name) for name in ("put_item", "update_item", "delete_item", "get_item")}

    def replaced(name: str, original: Respond) -> Respond:
        def request(handler: Any) -> Any:
            def respond() -> Any:
                with one_at_a_time:
                    return original(handler)

            running[0].requests.append(name)
            return running[0].respond(name, respond)

        return request

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    for name, original in originals.items():
        setattr(DynamoHandler, name, replaced(name, original))
    server.start()
    host, port = server.get_host_and_port()
    running.append(DynamoDbServer(f"http://{host}:{port}"))
    try:
        yield running[0]
    finally:
        server.stop()
        for name, original in originals.items():
            setattr(DynamoHandler, name, original)
