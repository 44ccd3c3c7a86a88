"""Tables whose buckets are ranges of hashes, which clustering splits and merges."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, ConflictError, UnsupportedTableError
from pyhudi.index.consistent_hashing import FIRST_INSTANT, FOLDER, HashingMetadata, consistent_hashes, load_metadata
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage import open_storage
from tests.spark.model import Model, Row, frame, options, rows_of
from tests.spark.write.plans.buckets.bucket_writes import BUCKETS, batch, bucketed


def test_consistent_hashing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, model = str(tmp_path / "table"), Model()
    engine = {"hoodie__index__bucket__engine": "CONSISTENT_HASHING"}

    def step(operation: str, rows: list[Row], **more: Any) -> None:
        write(frame(spark, rows), path, bucketed(operation, "MERGE_ON_READ", **{**engine, **more}))
        assert rows_of(path) == model.rows, operation
        slices = HudiTable.for_path(path).inspect.file_slices().to_pylist()
        for row in slices:
            known = HashingMetadata.first(row["partition"], BUCKETS)
            assert row["file_id"] in known.file_ids()
            file = tmp_path / "table" / FOLDER / row["partition"] / f"{FIRST_INSTANT}.hashing_meta"
            assert file.read_bytes() == known.encode()

    rows = batch(0, 40, 10, "first")
    model.upsert(rows)
    step("upsert", rows)
    # the number of buckets counts for new partitions only, and here there is none
    rows = [*batch(0, 20, 11, "new"), *batch(40, 45, 1, "fresh"), ("k021", "p1", 9, "old")]
    model.upsert(rows)
    step("upsert", rows, hoodie__bucket__index__num__buckets=7)
    shutil.rmtree(tmp_path / "table" / FOLDER / "p1")  # as in a copy of data files and timeline
    with pytest.raises(UnsupportedTableError, match=r"with another index, or another hoodie\.bucket\.index\.num"):
        step("upsert", rows, hoodie__bucket__index__num__buckets=7)
    gone = [*batch(0, 3, 0, ""), ("nobody", "p1", 0, "")]
    model.delete(gone)
    step("delete", gone)
    rows = [("x", "other", 1, "bulk"), ("y", "p1", 1, "bulk")]
    model.upsert(rows)
    step("bulk_insert", rows)
    with pytest.raises(UnsupportedTableError, match="insert_overwrite is not supported with consistent hashing"):
        step("insert_overwrite", rows)
    with pytest.raises(UnsupportedTableError, match="delete_partition is not supported with consistent hashing"):
        step("delete_partition", rows)
    with pytest.raises(UnsupportedTableError, match="delete_partition is not supported with consistent hashing"):
        write(frame(spark, rows), path, options("delete_partition"))
    with pytest.raises(UnsupportedTableError, match="the save mode overwrite is not supported with consistent hashing"):
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ", **engine), "overwrite")
    assert rows_of(path) == model.rows
    with monkeypatch.context() as patch:  # Apache Hudi deletes partitions all the same
        patch.setattr("pyhudi.spark.write.operations.delete_partition.check_not_consistent", lambda *_: None)
        write(frame(spark, rows[:1]), path, options("delete_partition"))
    model.drop("other")
    model.upsert(rows[1:])
    step("upsert", rows[1:])
    with pytest.raises(UnsupportedTableError, match="was replaced"):
        step("upsert", rows)
    assert rows_of(path) == model.rows
    with pytest.raises(UnsupportedTableError, match="bucket index"):
        write(frame(spark, rows), path, bucketed("upsert", "MERGE_ON_READ"))
    with pytest.raises(ConfigError, match="requires a merge-on-read table"):
        write(frame(spark, rows), str(tmp_path / "copies"), bucketed("upsert", "COPY_ON_WRITE", **engine))


def test_buckets_are_split_and_merged(spark: SparkSession, tmp_path: Path) -> None:
    path, model = str(tmp_path / "table"), Model()
    engine = {"hoodie__index__bucket__engine": "CONSISTENT_HASHING", "hoodie__bucket__index__num__buckets": 2}
    # which writes to old and new buckets in Apache Hudi
    engine["hoodie__clustering__updates__strategy"] = "SparkConsistentBucketDuplicateUpdateStrategy"
    given = bucketed("upsert", "MERGE_ON_READ", **engine)

    def step(operation: str, rows: list[Row]) -> None:
        write(frame(spark, rows), path, bucketed(operation, "MERGE_ON_READ", **engine))
        assert rows_of(path) == model.rows, operation

    def resized(**rules: object) -> set[int]:
        """The numbers of buckets of partitions after a clustering; every row is where writes will look for it."""
        asked = {f"hoodie.bucket.index.{name.replace('_', '.')}": value for name, value in rules.items()}
        table = HudiTable.for_path(path)
        result = table.services.cluster({**given, **asked})
        assert result, result
        assert rows_of(path) == model.rows
        (instant,) = result.instants
        known = load_metadata(open_storage(path), ["p0", "p1"], ())
        assert {found.instant for found in known.values()} == {instant}
        found = table.scan(columns=[RECORD_KEY, PARTITION_PATH, "_hoodie_file_name"]).to_arrow()
        for partition, metadata in known.items():
            mine = found.filter(pc.equal(found[PARTITION_PATH], partition))
            ids = metadata.file_ids()
            buckets = metadata.buckets_of(consistent_hashes(mine[RECORD_KEY].combine_chunks(), ["id"]))
            files = mine["_hoodie_file_name"].to_pylist()
            assert all(file.startswith(ids[bucket]) for bucket, file in zip(buckets, files, strict=True))
        assert table.validate_metadata().num_rows == 0
        return {len(metadata.ends) for metadata in known.values()}

    rows = batch(0, 40, 10, "first")
    model.upsert(rows)
    step("upsert", rows)
    rows = batch(0, 20, 11, "logs")
    model.upsert(rows)
    step("upsert", rows)
    services = HudiTable.for_path(path).services
    tiny = {"hoodie.bucket.index.split.threshold": 1e-9, "hoodie.bucket.index.max.num.buckets": 4}
    plan = services.schedule_clustering({**given, **tiny})
    assert plan.outputs == (2, 2, 2, 2)
    with pytest.raises(ConflictError, match="clustering"):
        step("upsert", rows)
    assert rows_of(path) == model.rows
    assert services.run_clustering(options=given).instants == (plan.instant,)
    assert rows_of(path) == model.rows
    rows = [*batch(10, 60, 12, "after"), ("z", "p1", 1, "fresh")]
    model.upsert(rows)
    step("upsert", rows)
    assert resized() == {2}  # small ones, more than it began with
    assert services.cluster(given).reason.startswith("there are no file groups to cluster")
    assert resized(min_num_buckets=1) == {1}
    step("upsert", rows)
    assert resized(split_threshold=1e-9, max_num_buckets=2) == {2}
    gone = batch(0, 30, 0, "")
    model.delete(gone)
    step("delete", gone)
    # as if the process had died before it could say that the clustering is done
    marks = list((tmp_path / "table" / FOLDER).rglob("*.commit"))
    assert len(marks) == 8
    for mark in marks:
        mark.unlink()
    rows = batch(20, 50, 13, "last")
    model.upsert(rows)
    step("upsert", rows)
    assert len(list((tmp_path / "table" / FOLDER).rglob("*.commit"))) == 2
    # what is undone, the buckets included, is as if it had never been
    to = HudiTable.for_path(path).latest_instant
    assert to is not None
    assert resized(split_threshold=1e-9, max_num_buckets=4) == {4}
    HudiTable.for_path(path).services.restore(to)
    assert rows_of(path) == model.rows
    rows = batch(0, 60, 14, "restored")
    model.upsert(rows)
    step("upsert", rows)
    assert resized(split_threshold=1e-9, max_num_buckets=4) == {4}
