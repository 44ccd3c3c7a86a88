"""Spark adds up the bytes of a batch after each row only where rows may be large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.spark.execution.arrow_batch_limits import MAX_BYTES, MAX_ROWS, MIN_ROWS, batches_limited_by_rows
from pyhudi.spark.write import write_execution
from pyhudi.spark.write.dataframe_writer import APPEND, OVERWRITE, write

LIMITS_BYTES = not pyspark.__version__.startswith("3.")
NO_LIMIT = str(2**31 - 1)


def settings(spark: SparkSession) -> tuple[str | None, str | None]:
    return spark.conf.get(MAX_BYTES, None), spark.conf.get(MAX_ROWS, None)


def small_rows(spark: SparkSession) -> DataFrame:
    columns = "id", "CAST(id AS STRING) s", "named_struct('d', CAST(id AS DECIMAL(9, 2)), 't', current_timestamp()) n"
    return spark.range(10).selectExpr(*columns)


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def one_more(values: pd.Series) -> pd.Series:
    return values + 1


def test_rows_with_small_values_are_counted_only(spark: SparkSession) -> None:
    before = settings(spark)
    with batches_limited_by_rows(small_rows(spark)):
        assert settings(spark) == ((NO_LIMIT, "4096") if LIMITS_BYTES else before)
    assert settings(spark) == before


@pytest.mark.parametrize(
    "changed",
    [
        lambda df: df.selectExpr("CAST(s AS BINARY) b"),
        lambda df: df.selectExpr("named_struct('a', array(id)) n"),
        lambda df: df.selectExpr("map(id, s) m"),
        lambda df: df.select(F.udf(lambda n: n, "long")("id")),
        lambda df: df.select(F.pandas_udf(one_more, "long")("id")),  # type: ignore[call-overload]
        lambda df: df.select("id").mapInArrow(same, "id long"),
        lambda df: df.select("id").mapInPandas(same, "id long"),
    ],
    ids=["binary", "array", "map", "udf", "pandas_udf", "mapInArrow", "mapInPandas"],
)
def test_values_that_may_be_large_keep_the_limit(
    spark: SparkSession, changed: Callable[[DataFrame], DataFrame]
) -> None:
    before = settings(spark)
    with batches_limited_by_rows(changed(small_rows(spark))):
        assert settings(spark) == before


def test_few_rows_keep_the_limit(spark: SparkSession) -> None:
    before = settings(spark)
    with batches_limited_by_rows(small_rows(spark), MIN_ROWS - 1):
        assert settings(spark) == before
    with batches_limited_by_rows(small_rows(spark), MIN_ROWS):
        assert (settings(spark) != before) is LIMITS_BYTES


def test_batches_have_a_limit_of_rows_if_those_of_the_session_have_none(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set(MAX_ROWS, "0")
    with batches_limited_by_rows(small_rows(session)):
        assert settings(session)[1] == ("4096" if LIMITS_BYTES else "0")


def test_limits_of_the_session_are_kept(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set(MAX_ROWS, "100")
    with batches_limited_by_rows(small_rows(session)):
        assert settings(session)[1] == "100"
    session.conf.set(MAX_BYTES, "1048576")
    with batches_limited_by_rows(small_rows(session)):
        assert settings(session) == ("1048576", "100")


def test_limits_of_writes(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are counted by the plan of an upsert, and not by that of a bulk insert."""
    counts: list[int | None] = []

    def limited(_: DataFrame, count: int | None = None) -> Any:
        counts.append(count)
        return nullcontext()

    monkeypatch.setattr(write_execution, "batches_limited_by_rows", limited)
    named = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    for mode, operation in ((APPEND, "upsert"), (OVERWRITE, "bulk_insert")):
        write(spark.range(3), str(tmp_path), {**named, "hoodie.datasource.write.operation": operation}, mode)
    assert counts == [3, None]
