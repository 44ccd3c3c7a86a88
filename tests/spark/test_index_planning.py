"""Indexes with as many records as the table, built while writes go on that move, delete and add keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.model import Model, Row, by_event_time, frame
from tests.spark.test_record_index import places, real_places
from tests.spark.test_secondary_index import batch

from pyhudi.errors import UnsupportedTableError
from pyhudi.hudi_table import HudiTable
from pyhudi.services import indexrun
from pyhudi.spark.write_job import WriteJob
from pyhudi.spark.writer import write

MOVES = {"hoodie__simple__index__update__partition__path": True}
GROUPS = {"hoodie.metadata.record.index.min.filegroup.count": 3}


@pytest.mark.parametrize(("table_type", "version"), [("MERGE_ON_READ", 9), ("MERGE_ON_READ", 6)])
def test_writes_beside(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, version: int
) -> None:
    path, model = str(tmp_path / "table"), Model()
    more = {"hoodie__record__index__update__partition__path": True}

    def step(operation: str, rows: list[Row], **extra: Any) -> None:
        write(frame(spark, rows), path, by_event_time(operation, table_type, version, **more, **extra), "append")

    def add(start: int, stop: int, ts: int, shift: int = 0) -> None:
        rows = batch(start, stop, ts, shift)
        model.upsert(rows)
        step("upsert", rows)

    def beside(ts: int) -> None:
        """Updates and inserts, rows that move, deletes, a partition that is overwritten, a compaction."""
        add(10, 50, ts, 1)
        moved = ("mover", f"p{ts}", ts + 2, "red")
        model.upsert([moved])
        step("upsert", [moved], **{**MOVES, "hoodie__index__type": "GLOBAL_SIMPLE"})
        gone = [*batch(0, 3, ts + 5), ("nobody", "p1", 0, "")]
        model.delete(gone)
        step("delete", gone)
        if table_type == "MERGE_ON_READ":
            services.compact(spark=spark)
        rows: list[Row] = [("k001", "p0", ts + 9, "red"), ("new", "p0", ts + 9, "bl\\ue")]
        model.drop("p0")
        model.upsert(rows)
        step("insert_overwrite", rows)

    add(0, 40, 10)
    model.upsert([("mover", "p1", 1, "red")])
    step("upsert", [("mover", "p1", 1, "red")])
    services = HudiTable.for_path(path).services
    real = indexrun._written

    def build(name: str, columns: tuple[str, ...], ts: int) -> None:
        def written(begun: Any) -> Any:
            if ts % 2:
                beside(ts)
            found = real(begun)
            if not ts % 2:
                beside(ts)
            return found

        planned = services.schedule_index(name, columns, options=GROUPS)
        add(5, 8, ts - 1, 3)
        monkeypatch.setattr(indexrun, "_written", written)
        assert services.run_index(planned.instant, GROUPS, spark=spark).partitions == planned.partitions
        monkeypatch.undo()

    build("record_index", (), 21)
    assert places(path) == real_places(path)
    step("upsert", batch(0, 4, 39), hoodie__index__type="RECORD_INDEX")
    model.upsert(batch(0, 4, 39))
    assert places(path) == real_places(path)


def test_an_index_that_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    """Keys in two file groups, of which a record index knows one: the builder gives up, and readers look nothing up."""
    path = str(tmp_path / "table")
    for _ in range(2):
        write(frame(spark, batch(0, 4, 1)), path, by_event_time("bulk_insert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    services.schedule_index("record_index")
    with pytest.raises(UnsupportedTableError, match="under the table's lock"):
        services.schedule_index("by_v", "v")
    with pytest.raises(UnsupportedTableError, match="4 keys are in several file groups"):
        services.run_index(options=GROUPS, spark=spark)
    config = HudiTable.for_path(path).config
    assert not config.metadata_partitions_inflight
    assert "record_index" not in config.metadata_partitions
    assert len(services.pending_indexes()) == 1
    assert services.drop_index("record_index").partitions == ("record_index",)
    assert not services.pending_indexes()


@pytest.mark.parametrize("when", ["begun", "built"])
def test_a_write_that_began_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It tells the index that is begun, or even ready, by the time it commits."""
    path = str(tmp_path / "table")
    write(frame(spark, batch(0, 20, 1)), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    real = WriteJob.commit

    def commit(self: WriteJob, *args: Any, **more: Any) -> Any:
        monkeypatch.undo()
        services.schedule_index("record_index", options=GROUPS)
        if when == "built":
            services.run_index(options=GROUPS, spark=spark)
            return real(self, *args, **more)
        found = []
        monkeypatch.setattr(
            indexrun, "_written", lambda begun: (found.append(real(self, *args, **more)), written(begun))[1]
        )
        services.run_index(options=GROUPS, spark=spark)
        return found[0]

    written = indexrun._written
    monkeypatch.setattr(WriteJob, "commit", commit)
    write(frame(spark, batch(10, 30, 2)), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    assert "record_index" in HudiTable.for_path(path).config.metadata_partitions
    assert places(path) == real_places(path)


def test_keys_that_come_a_second_time(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the builder, one write puts keys into a second file group. Their index would find half of their rows."""
    path, rows = str(tmp_path / "table"), batch(0, 20, 1)
    write(frame(spark, rows), path, by_event_time("upsert", "COPY_ON_WRITE"), "append")
    services = HudiTable.for_path(path).services
    services.schedule_index("record_index", options=GROUPS)
    real = indexrun._written

    def beside(begun: Any) -> Any:
        found = real(begun)
        monkeypatch.undo()
        write(frame(spark, rows[5:8]), path, by_event_time("bulk_insert", "COPY_ON_WRITE"), "append")
        return found

    monkeypatch.setattr(indexrun, "_written", beside)
    with pytest.raises(UnsupportedTableError, match="3 keys are in several file groups"):
        services.run_index(options=GROUPS, spark=spark)
    config = HudiTable.for_path(path).config
    assert "record_index" not in {*config.metadata_partitions, *config.metadata_partitions_inflight}
    assert len(HudiTable.for_path(path).scan([("id", "=", rows[5][0])]).to_arrow()) == 2
