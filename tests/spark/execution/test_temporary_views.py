"""DataFrames that the user has cached are still cached after pyhudi has used them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import pyhudi
from pyhudi.spark.execution.arrow_batch_limits import batches_limited_by_rows
from pyhudi.spark.execution.cached_frames import CachedFrames, is_cached
from pyhudi.spark.execution.temporary_views import plan_text
from pyhudi.spark.read.table_lineage import snapshot_ids
from pyhudi.storage import open_storage

KEYED = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
INDEXED_BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.metadata.record.index.enable": "true",
}


@pytest.fixture
def cached(spark: SparkSession) -> Iterator[DataFrame]:
    """Rows of the user, cached but not evaluated yet."""
    rows = spark.range(4).withColumn("v", F.col("id") * 2).cache()
    yield rows
    rows.unpersist()


def test_looking_at_a_plan_keeps_the_cache(cached: DataFrame, tmp_path: Path) -> None:
    assert "InMemoryRelation" in plan_text(cached)
    assert not snapshot_ids(cached, open_storage(str(tmp_path)))
    with batches_limited_by_rows(cached):
        assert is_cached(cached)
    assert is_cached(cached)


def test_cached_frames_leave_those_of_others(cached: DataFrame) -> None:
    with CachedFrames() as frames:
        own = frames.add(cached.where("id > 1"))
        assert frames.add(cached) is cached
        assert is_cached(own)
    assert is_cached(cached)
    assert not is_cached(own)


def test_frames_whose_caching_is_interrupted_are_released(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.range(4).withColumn("v", F.col("id") * 3)
    persist = type(frame).persist

    def interrupted(given: DataFrame) -> None:
        persist(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(frame), "persist", interrupted)
    with pytest.raises(KeyboardInterrupt), CachedFrames() as frames:
        frames.add(frame)
    assert not is_cached(frame)


def test_writes_keep_the_cache_of_their_input(spark: SparkSession, tmp_path: Path) -> None:
    path, evaluated = str(tmp_path / "t"), tmp_path / "evaluated"

    def watched(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with evaluated.open("a") as log:
                log.write("x" * batch.num_rows)
            yield batch

    numbers = spark.range(4).withColumn("v", F.col("id") * 2)
    rows = numbers.mapInArrow(watched, numbers.schema).cache()
    pyhudi.activate(spark)
    try:
        for operation in ("bulk_insert", "upsert", "delete"):
            options = {**KEYED, **INDEXED_BUCKETS, "hoodie.datasource.write.operation": operation}
            rows.write.format("hudi").options(**options).mode("append").save(path)
            assert is_cached(rows)
        assert spark.read.format("hudi").load(path).count() == 0
        assert evaluated.read_text() == "xxxx"
    finally:
        rows.unpersist()
        pyhudi.deactivate()


def test_statements_keep_the_cache_of_their_dataframes(spark: SparkSession, cached: DataFrame, tmp_path: Path) -> None:
    pyhudi.activate(spark)
    try:
        properties = "TBLPROPERTIES (primaryKey = 'id')"
        spark.sql(f"CREATE TABLE kept (id BIGINT, v BIGINT) USING hudi {properties} LOCATION '{tmp_path}/t'")
        clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        spark.sql(f"MERGE INTO kept USING {{rows}} s ON kept.id = s.id {clauses}", rows=cached)
        assert is_cached(cached)
        spark.sql("INSERT INTO kept SELECT id + 4, v FROM {rows}", rows=cached)
        assert is_cached(cached)
        assert spark.table("kept").count() == 8
        spark.sql("DROP TABLE kept")
    finally:
        pyhudi.deactivate()
