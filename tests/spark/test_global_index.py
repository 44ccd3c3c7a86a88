"""Writes with an index over the whole table: a key is one record, whatever partition its rows name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.model import frame, options, rows_of

from pyhudi.spark.writer import write

TWICE = [("a", "p", 1, "older"), ("a", "q", 2, "newer"), ("b", "p", 1, "")]


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_a_key_in_two_partitions_of_the_first_batch(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    path = str(tmp_path / "table")
    more = {"hoodie__index__type": "GLOBAL_SIMPLE", "hoodie__combine__before__insert": True}
    write(frame(spark, TWICE), path, options(operation, **more))
    assert rows_of(path) == [("a", "q", 2, "newer"), ("b", "p", 1, "")]
    # without such an index the partition is part of the key
    write(frame(spark, TWICE), path, options(operation, hoodie__combine__before__insert=True), "overwrite")
    assert len(rows_of(path)) == 3
