"""Spark for the tests of this folder, without pyhudi activated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(spark_session: SparkSession) -> SparkSession:
    """The session that all tests share."""
    return spark_session
