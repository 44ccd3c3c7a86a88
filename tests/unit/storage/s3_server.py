"""A real S3-compatible server on the loopback interface, for tests.

moto's server supports ``If-None-Match: *`` and ``If-Match`` on puts, but checks and puts in two steps, so two
concurrent
requests may both succeed, which S3 rules out. Its puts are therefore serialised here; the
clients, the protocol and the conditions are the real ones.
"""

from __future__ import annotations

import itertools
import logging
import threading
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs
from uuid import uuid4


class S3Server:
    """A running server; ``options`` are those that :func:`pyhudi.storage.open_storage` requires to connect to it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.options = {
            "pyhudi.storage.endpoint_url": endpoint,
            "pyhudi.storage.allow_http": "true",
            "pyhudi.storage.region": "us-east-1",
            "pyhudi.storage.access_key_id": "test-id",
            "pyhudi.storage.secret_access_key": "test-secret",
        }

    def request(self, method: str, path: str, data: bytes = b"") -> bytes:
        """Send one plain request, without the object store client."""
        with urllib.request.urlopen(urllib.request.Request(self.endpoint + path, data, method=method)) as answer:
            return bytes(answer.read())

    def boto(self) -> Any:
        """Return Amazon's own client."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="id",
            aws_secret_access_key="secret",
        )

    def fill(self, bucket: str, keys: Iterable[str]) -> None:
        """Create many small objects at once, without requests."""
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        for key in keys:
            s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket, key, b"1")

    @contextmanager
    def recorded_requests(self) -> Iterator[list[str]]:
        """Record the requests of the block: the method (``LIST`` for listings), the path, and the prefix of a
        listing."""
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication as Application

        answer, seen = Application.__call__, list[str]()

        def answer_recorded(app: Any, environ: dict[str, Any], start: Any) -> Any:
            query = parse_qs(environ.get("QUERY_STRING", ""))
            method = "LIST" if "list-type" in query else environ["REQUEST_METHOD"]
            seen.append(f"{method} {environ['PATH_INFO']} {query.get('prefix', [''])[0]}".strip())
            return answer(app, environ, start)

        Application.__call__ = answer_recorded  # type: ignore[method-assign]
        try:
            yield seen
        finally:
            Application.__call__ = answer  # type: ignore[method-assign]

    @contextmanager
    def losing_answers(self, *numbers: int) -> Iterator[None]:
        """Let puts with these numbers (from 1) take effect and respond with a server error."""
        with self._answering(numbers, (503, {}, "slow down"), take_effect=True):
            yield

    @contextmanager
    def conflicting(self, *numbers: int) -> Iterator[None]:
        """Refuse puts with these numbers (from 1), as S3 does while another request for the same key is in progress."""
        with self._answering(numbers, (409, {}, "ConditionalRequestConflict"), take_effect=False):
            yield

    @contextmanager
    def _answering(self, numbers: Sequence[int], wrong: Any, *, take_effect: bool) -> Iterator[None]:
        from moto.s3 import responses

        put, count = responses.S3Response.put_object, itertools.count(1)

        def put_wrongly(response: Any) -> Any:
            if next(count) not in numbers:
                return put(response)
            if take_effect:
                put(response)
            return wrong

        responses.S3Response.put_object = put_wrongly
        try:
            yield
        finally:
            responses.S3Response.put_object = put

    def new_bucket(self) -> str:
        """Return the name of a new, empty bucket."""
        name = f"bucket-{uuid4().hex[:12]}"
        self.request("PUT", f"/{name}")
        return name


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Start a server on a free port, and stop it at the end."""
    from moto.s3 import responses
    from moto.server import ThreadedMotoServer

    one_at_a_time = threading.Lock()
    put = responses.S3Response.put_object

    def put_alone(self: Any) -> Any:
        with one_at_a_time:
            return put(self)

    responses.S3Response.put_object = put_alone
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
        responses.S3Response.put_object = put
