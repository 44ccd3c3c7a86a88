from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.storage.s3_server import S3Server, running_s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    pytest.importorskip("moto.server", reason="the S3-compatible server of the tests is not installed")
    pytest.importorskip("obstore")
    with running_s3_server() as server:
        yield server
