"""Fixtures: one Apache Hudi at a time (tests are grouped by release) and one Spark of ours for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.oracle import Oracle


@pytest.fixture(scope="session")
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """The Apache Hudi release that the test's parameter names. Pytest orders the tests so that each starts once."""
    with Oracle(request.param) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Our side: a Spark without any jar, with pyhudi activated."""
    from pyspark.sql import SparkSession

    import pyhudi

    builder = pyhudi.configure_spark(SparkSession.builder)
    for key, value in {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    pyhudi.activate(session)
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the real Apache Hudi."""
    for item in items:
        if "interop" in item.path.parts:
            item.add_marker(pytest.mark.interop)
