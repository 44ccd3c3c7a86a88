"""Tables of older payload classes through Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.cases import seldom
from tests.spark.model import frame, options, rows_of
from tests.spark.test_write_logs import blocks

from pyhudi.format.log import BlockType, decode_deletes
from pyhudi.hudi_table import HudiTable
from pyhudi.spark.writer import write

MYSQL = "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"


@pytest.mark.parametrize("version", [6, seldom(8)])
def test_sequences_of_mysql(spark: SparkSession, tmp_path: Path, version: int) -> None:
    """Below version 9 the class orders by the numbers in ``_event_seq``; it needs no other column, and deletes in log
    files carry the text. Recorded from tables of 0.15.0 and 1.0.2, which 1.2.0 read."""
    path = tmp_path / "table"
    schema = "id string, part string, _event_seq string, v string, _change_operation_type string"
    more = {
        "hoodie__datasource__write__table__type": "MERGE_ON_READ",
        "hoodie__write__table__version": version,
        "hoodie__datasource__write__precombine__field": "_event_seq",
        "hoodie__datasource__write__payload__class": MYSQL,
        "hoodie__compact__inline": "false",
    }
    base = [(f"k{i}", "p", "000001.10", "base", "u") for i in range(8)]
    write(frame(spark, base, schema).coalesce(1), str(path), options("bulk_insert", **more))  # type: ignore[arg-type]
    rows = [
        ("k0", "p", "000001.9", "9", "u"),
        ("k1", "p", "000010.1", "file 10", "u"),
        ("k2", "p", "000001.10", "tie", "u"),
        ("k3", "p", "000001.11", "11", "u"),
        ("k3", "p", "000001.9", "9", "u"),
        ("k4", "p", "000001.5", "", "d"),
        ("k6", "p", "000001.20", "", "d"),
    ]
    write(frame(spark, rows, schema).coalesce(1), str(path), options("upsert", **more))  # type: ignore[arg-type]
    (deletes,) = (block for block in blocks(path) if block.type is BlockType.DELETE)
    found = decode_deletes(deletes, pa.schema([("_event_seq", pa.string())])).to_pylist()
    assert [(row["_hoodie_record_key"], row["_event_seq"]) for row in found] == [
        ("k4", "000001.5"),
        ("k6", "000001.20"),
    ]
    late = [("k6", "p", "000001.15", "after", "u"), ("k1", "p", "000009.1", "file 9", "u")]
    moved = {"hoodie__index__type": "GLOBAL_SIMPLE", "hoodie__simple__index__update__partition__path": "true"}
    late += [("k5", "q", "000001.9", "stays", "u"), ("k7", "q", "000001.100", "moves", "u")]
    write(frame(spark, late, schema), str(path), options("upsert", **more, **moved))  # type: ignore[arg-type]
    expected = [
        ("k0", "p", "base"),
        ("k1", "p", "file 10"),
        ("k2", "p", "tie"),
        ("k3", "p", "11"),
        ("k5", "p", "base"),
        ("k6", "p", "after"),
        ("k7", "q", "moves"),
    ]
    assert rows_of(path, ("id", "part", "v")) == expected
    assert HudiTable.for_path(str(path)).services.compact().instants
    assert rows_of(path, ("id", "part", "v")) == expected
