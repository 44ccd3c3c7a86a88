"""Spark for the tests of this folder, without pyhudi activated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.sessions import small_bloom_filters

pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package", autouse=True)
def _small_bloom_filters() -> Iterator[None]:
    with small_bloom_filters():
        yield


@pytest.fixture(scope="session")
def spark(spark_session: SparkSession) -> SparkSession:
    """The session that all tests share."""
    return spark_session
