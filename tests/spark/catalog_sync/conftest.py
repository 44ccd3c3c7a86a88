"""Fixtures: Spark with pyhudi activated, and a metastore in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import pyhudi
from tests.metastore_server import FakeMetastore, fake_metastore


@pytest.fixture(scope="module", autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


@pytest.fixture
def metastore() -> Iterator[tuple[str, FakeMetastore]]:
    with fake_metastore() as running:
        yield running
