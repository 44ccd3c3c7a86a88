"""Writers that append to the same buckets at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import ConfigError, ConflictError, UnsupportedTableError
from pyhudi.spark.write.dataframe_writer import write
from tests.bucket_tables import NON_BLOCKING, bucket_index, meanwhile
from tests.cases import seldom
from tests.spark.model import Row, by_event_time, frame, options, rows_of

ONE_BUCKET = {**bucket_index(1), **NON_BLOCKING, "hoodie.compact.inline": False}


@pytest.mark.parametrize("version", [9, seldom(8)])
def test_non_blocking_writers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Writers append log files to the same file groups, also if both create them, while another compacts."""
    path = str(tmp_path / "table")

    def upsert(*rows: Row, operation: str = "upsert") -> None:
        write(frame(spark, rows), path, by_event_time(operation, "MERGE_ON_READ", version, **ONE_BUCKET))

    def upsert_with(other: Callable[[], object], *rows: Row, operation: str = "upsert") -> None:
        """Write while another writer is at work, and commits first."""
        meanwhile(monkeypatch, other)
        upsert(*rows, operation=operation)

    upsert(("a", "p", 1, "first"), operation="insert")
    upsert_with(
        lambda: upsert(("a", "p", 5, "theirs"), ("b", "p", 2, "theirs"), ("c", "q", 1, "theirs")),
        *(("a", "p", 4, "ours"), ("b", "p", 3, "ours"), ("c", "q", 2, "ours")),
    )
    assert rows_of(path) == [("a", "p", 5, "theirs"), ("b", "p", 3, "ours"), ("c", "q", 2, "ours")]
    table = HudiTable.for_path(path)
    slices = table.inspect.file_slices().select(["partition", "file_id", "base_path"]).to_pylist()
    assert slices == [
        {"partition": name, "file_id": "00000000-0000-0000-0000-000000000000-0", "base_path": None} for name in "pq"
    ]
    # what completes after a compaction was planned is not part of it
    upsert_with(table.services.compact, ("a", "p", 6, "later"), ("b", "p", 1, "late"), ("d", "p", 1, "new"))
    expected = [("a", "p", 6, "later"), ("b", "p", 3, "ours"), ("c", "q", 2, "ours"), ("d", "p", 1, "new")]
    assert rows_of(path) == expected
    plans: list[str] = []
    upsert_with(lambda: plans.append(str(table.services.schedule_compaction().instant)), ("c", "q", 3, "x"))
    table.services.run_compaction(plans[0])
    expected[2] = ("c", "q", 3, "x")
    assert rows_of(path) == expected
    table.services.compact()
    upsert_with(lambda: upsert(("d", "p", 2, "x")), ("a", "p", 9, "x"), operation="delete")
    assert rows_of(path) == [*expected[1:3], ("d", "p", 2, "x")]
    assert table.validate_metadata().num_rows == 0
    # base files may not be written meanwhile
    with pytest.raises(ConflictError, match="concurrently changed file group '00000000-0000"):
        upsert_with(lambda: upsert(("e", "r", 1, "theirs")), ("f", "r", 1, "ours"), operation="bulk_insert")
    assert [row[0] for row in rows_of(path)] == ["b", "c", "d", "e"]


@pytest.mark.parametrize(
    "other",
    [
        {"hoodie__datasource__write__table__type": "COPY_ON_WRITE"},
        {"hoodie__write__table__version": 6},
        {"hoodie__index__type": "SIMPLE"},
        {"hoodie__index__bucket__engine": "CONSISTENT_HASHING"},
    ],
)
def test_tables_that_non_blocking_writers_cannot_write(
    spark: SparkSession, tmp_path: Path, other: dict[str, object]
) -> None:
    given = {"hoodie__datasource__write__table__type": "MERGE_ON_READ", **ONE_BUCKET, **other}
    with pytest.raises(
        ConfigError, match="requires a merge-on-read table of version 8 or later with the simple bucket"
    ):
        write(frame(spark, [("a", "p", 1, "x")]), str(tmp_path / "table"), options("upsert", **given))
    assert not (tmp_path / "table").exists()


def test_what_non_blocking_writers_cannot_do(spark: SparkSession, tmp_path: Path) -> None:
    """The ids of their file groups come again, and would be those of replaced ones; indexes of keys have no order."""
    path = str(tmp_path / "table")

    def run(*rows: Row, operation: str = "upsert", **more: object) -> None:
        given = {**ONE_BUCKET, **more}
        write(frame(spark, rows), path, by_event_time(operation, "MERGE_ON_READ", 9, **given))

    run(("a", "p", 1, "x"), ("b", "q", 1, "x"))
    for operation in ("insert_overwrite", "insert_overwrite_table", "delete_partition"):
        with pytest.raises(UnsupportedTableError, match="replaces file groups"):
            run(("a", "p", 2, "y"), operation=operation)
    with pytest.raises(UnsupportedTableError, match="the index record_index cannot tell"):
        run(("a", "p", 2, "y"), hoodie__metadata__record__index__enable="true")
    one = {"hoodie__write__concurrency__mode": "SINGLE_WRITER"}
    run(("a", "p", 2, "y"), operation="delete_partition", **one)
    with pytest.raises(UnsupportedTableError, match="was replaced, as by delete_partition"):
        run(("a", "p", 3, "z"))
    assert rows_of(path) == [("b", "q", 1, "x")]
    run(("a", "p", 3, "z"), **one)
    assert rows_of(path) == [("a", "p", 3, "z"), ("b", "q", 1, "x")]
