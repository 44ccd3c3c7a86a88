"""Settings of property tests, whose examples may take any time, and the Spark session that tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.cases import IN_CONNECT
from tests.connect_server import connect_session
from tests.properties import examples
from tests.sessions import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

settings.register_profile(
    "pyhudi", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pyhudi")


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session of a process for `tests/spark` and `tests/interop`: starting one costs seconds. With
    ``PYHUDI_TEST_CONNECT`` it is one of Spark Connect."""
    folder = tmp_path_factory.mktemp("spark")
    if IN_CONNECT:
        with connect_session(folder) as session:
            yield session
        return
    session = start_session(folder)
    yield session
    session.stop()
