"""Comparison of record indexes and secondary indexes with the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.indexes import secondary_index
from pyhudi.spark.indexes.record_index import record_index_update
from pyhudi.spark.indexes.record_index.record_index_writer import KeyWriteResult
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.spark.indexes.indexed_rows import batch, record_indexed
from tests.spark.model import Row, frame

BY_PARTITION = {
    "hoodie__index__type": "RECORD_LEVEL_INDEX",
    "hoodie__metadata__record__index__enable": False,
    "hoodie__metadata__record__level__index__enable": True,
}


def problems(path: str) -> list[str]:
    table = HudiTable.for_path(path)
    assert not table.validate_metadata().num_rows
    return table.validate_metadata(indexes=True)["problem"].to_pylist()


@pytest.mark.parametrize("table_type", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_mismatches(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str) -> None:
    path = str(tmp_path / "t")

    def step(operation: str, rows: list[Row], **more: Any) -> None:
        given = record_indexed(operation, table_type, hoodie__compact__inline=False, **more)
        write(frame(spark, rows), path, given, "append")

    step("insert", batch(0, 8, 1))
    HudiTable.for_path(path).services.build_index("by_v", "v", spark=spark)
    step("upsert", batch(2, 10, 2, shift=1))
    step("delete", batch(4, 6, 3))
    assert problems(path) == []
    # from here on the indexes are not written
    monkeypatch.setattr(record_index_update, "write_keys", lambda *_: KeyWriteResult([], 0))
    monkeypatch.setattr(secondary_index, "write_entries", lambda *_: [])
    step("delete", batch(6, 8, 4))
    step("upsert", [("k000", "p1", 5, "red"), ("k020", "p0", 5, "red"), ("k021", "p0", 5, None)])
    assert problems(path) == [
        "record_index has entries without a row (2), such as 'k006'",
        "record_index has other file groups than the rows of these keys (1), such as 'k000'",
        "record_index lacks entries of rows (2), such as 'k020'",
        "secondary_index_by_v has entries without a row (2), such as '\\x00$k006'",
        "secondary_index_by_v lacks entries of rows (2), such as '\\x00$k021'",
    ]


def test_partitioned_record_index(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "t")
    given = record_indexed("upsert", "COPY_ON_WRITE", **BY_PARTITION)
    write(frame(spark, [("a", "p0", 1, "x"), ("a", "p1", 1, "x")]), path, given, "append")
    assert problems(path) == []
    monkeypatch.setattr(record_index_update, "write_keys", lambda *_: KeyWriteResult([], 0))
    write(frame(spark, [("b", "p1", 1, "x")]), path, given, "append")
    assert problems(path) == ["record_index lacks entries of rows (1), such as 'p1: b'"]
