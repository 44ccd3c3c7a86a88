"""Fixtures: one Apache Hudi at a time (tests are grouped by release) and one Spark session of pyhudi for all of
them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.oracle import Oracle
from tests.sessions import SMALL, remember_java_classes


class OneAtATime:
    """Keeps the most recently requested Apache Hudi running; two of them would require too much memory."""

    def __init__(self) -> None:
        self._running: Oracle | None = None

    def get(self, release: str) -> Oracle:
        """Return that release, started if it is not running."""
        if self._running is None or self._running.release != release:
            self.close()
            self._running = Oracle(release)
        return self._running

    def close(self) -> None:
        """Stop the running release."""
        if self._running is not None:
            self._running.close()
            self._running = None


@pytest.fixture(scope="session")
def oracles() -> Iterator[OneAtATime]:
    """Provide the processes of Apache Hudi."""
    keeper = OneAtATime()
    yield keeper
    keeper.close()


@pytest.fixture
def oracle(request: pytest.FixtureRequest, oracles: OneAtATime) -> Oracle:
    """Return the Apache Hudi release that the test's parameter names."""
    return oracles.get(request.param)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Return pyhudi's Spark session, without any jar, with pyhudi activated."""
    from pyspark.sql import SparkSession

    import pyhudi

    remember_java_classes()
    builder = pyhudi.configure_spark(SparkSession.builder)
    for key, value in {**SMALL, "spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    pyhudi.activate(session)
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in this folder as interop tests, and order them by release, so that each release is started
    once."""
    here = [item for item in items if "interop" in item.path.parts]
    for item in here:
        item.add_marker(pytest.mark.interop)
    here.sort(key=_release)
    ordered = iter(here)
    items[:] = [next(ordered) if "interop" in item.path.parts else item for item in items]


def _release(item: pytest.Item) -> str:
    spec = getattr(item, "callspec", None)  # tests without parameters have none
    return str(spec.params.get("oracle", "")) if spec is not None else ""
