"""Spark with pyhudi activated, and the input of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyhudi
from tests.spark.streaming.streams import Feed


@pytest.fixture(autouse=True)
def _active(spark: SparkSession) -> Iterator[None]:
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)
