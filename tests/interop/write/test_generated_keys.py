"""Rows of tables with generated keys, written back with their meta columns by either side."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from pyhudi import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import every, seldom
from tests.interop.harness.oracle import Oracle

NAMED = {"hoodie.table.name": "events", "hoodie.datasource.write.partitionpath.field": "city"}
DELETE = {"hoodie.datasource.write.operation": "delete"}
UPSERT = {"hoodie.datasource.write.operation": "upsert"}
COLUMNS = ["_hoodie_record_key", "_hoodie_partition_path", "id", "city", "fare"]


def rows_of(found: pa.Table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in found.select(COLUMNS).to_pylist())


@pytest.mark.parametrize("oracle", ["1.2.0", seldom("1.0.2")], indirect=True)
@pytest.mark.parametrize("kind", [seldom("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_rows_that_come_back(oracle: Oracle, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    given = {**NAMED, "hoodie.datasource.write.table.type": kind}
    if oracle.release == "1.0.2":
        given["hoodie.write.table.version"] = "8"
    first = pa.table({"id": [1, 2, 3, 1], "city": ["Oslo", "Oslo", "Moss", "Oslo"], "fare": [10, 20, 30, 10]})

    def theirs(path: Path, rows: pa.Table, more: dict[str, str]) -> None:
        oracle.write(path, rows, {**given, **more})

    def ours(path: Path, rows: pa.Table, more: dict[str, str]) -> None:
        new = "_hoodie_record_key" not in rows.schema.names
        frame = spark.createDataFrame(rows.to_pylist(), "id long, city string, fare long" if new else None)
        write(frame, str(path), {**given, **more})

    for name, make, change in (("theirs", theirs, ours), ("ours", ours, theirs)):
        path = tmp_path / name
        make(path, first, {})
        for by, again in every(2, ((change, make), (make, change))):
            read = oracle.read(path)
            before = rows_of(read)
            assert before == rows_of(HudiTable.for_path(str(path)).scan().to_arrow()), name
            wanted = read.filter(pc.equal(read["city"], "Oslo"))
            fare = pc.add(wanted["fare"], 1)
            changed = wanted.set_column(wanted.schema.get_field_index("fare"), "fare", fare)
            by(path, changed, UPSERT)
            after = sorted((*row[:4], row[4] + (row[3] == "Oslo")) for row in before)
            read = oracle.read(path)
            assert rows_of(read) == after, name
            gone = read.slice(0, 1)
            again(path, gone, DELETE)
            left = [row for row in after if row not in rows_of(gone)]
            assert len(left) == len(after) - 1
            assert rows_of(oracle.read(path)) == left == rows_of(HudiTable.for_path(str(path)).scan().to_arrow())
        assert HudiTable.for_path(str(path)).validate_metadata().num_rows == 0
