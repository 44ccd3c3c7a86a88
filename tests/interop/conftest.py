"""Fixtures: one Apache Hudi at a time (tests are grouped by release) and our Spark with pyhudi activated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE
from tests.sessions import small_bloom_filters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


@pytest.fixture(scope="package", autouse=True)
def _small_bloom_filters() -> Iterator[None]:
    with small_bloom_filters():
        yield


@pytest.fixture(scope="package")
def oracles() -> Iterator[OneAtATime]:
    """Provide the processes of Apache Hudi."""
    keeper = OneAtATime()
    yield keeper
    keeper.close()


@pytest.fixture
def oracle(request: pytest.FixtureRequest, oracles: OneAtATime) -> Oracle:
    """Return the Apache Hudi release that the test's parameter names."""
    return oracles.get(request.param)


@pytest.fixture(scope="package")
def spark(spark_session: SparkSession) -> Iterator[SparkSession]:
    """Our side: a Spark without any jar, with pyhudi activated."""
    import pyhudi

    key = "spark.sql.shuffle.partitions"
    usual = spark_session.conf.get(key)
    spark_session.conf.set(key, "2")
    pyhudi.activate(spark_session)
    yield spark_session
    pyhudi.deactivate()
    spark_session.conf.set(key, usual)


@pytest.fixture
def no_metadata_table(oracle: Oracle, spark: SparkSession) -> Iterator[None]:
    """For tests of statements: those of either side write no metadata table, unless nothing is skipped."""
    for run in (oracle.sql, spark.sql):
        for key, value in NO_METADATA_TABLE.items():
            run(f"SET {key}={value}")
    yield
    for run in (oracle.sql, spark.sql):
        for key in NO_METADATA_TABLE:
            run(f"RESET {key}")


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
