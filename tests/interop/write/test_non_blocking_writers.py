"""Non-blocking concurrency control: Apache Hudi writes while pyhudi does, to the same buckets, and each compacts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.bucket_tables import KEYS_AND_BUCKETS, NON_BLOCKING, meanwhile
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_COLUMN_STATISTICS, PARALLELISM
from tests.rows import assert_same_rows
from tests.spark_arrow import to_arrow

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
COMPARED = [*SCHEMA.names, "_hoodie_record_key", "_hoodie_partition_path"]
Row = tuple[str, str, int, str]


def _options(version: str) -> dict[str, str]:
    return {
        **KEYS_AND_BUCKETS,
        **NON_BLOCKING,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.cleaner.policy.failed.writes": "LAZY",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        **NO_COLUMN_STATISTICS,
        **PARALLELISM,
    }


@pytest.mark.parametrize(("oracle", "version"), [seldom(("1.0.2", "8")), ("1.2.0", "9")], indirect=["oracle"])
def test_both_write_at_once(
    oracle: Oracle, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    path, given = tmp_path / "t", _options(version)
    expected: dict[str, Row] = {}

    def merged(*rows: Row) -> None:
        for row in rows:
            if row[0] not in expected or row[2] >= expected[row[0]][2]:
                expected[row[0]] = row

    def theirs(*rows: Row, **more: str) -> None:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        # Apache Hudi takes the table's type from here where it checks the mode
        own = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.index.bucket.engine": "SIMPLE"}
        oracle.write(path, table, {**given, **own, **{key.replace("__", "."): value for key, value in more.items()}})
        merged(*rows)

    def ours(*rows: Row, other: Callable[[], object] = lambda: None) -> None:
        meanwhile(monkeypatch, other)
        own = {key: value for key, value in given.items() if "lock.provider" not in key}
        write(spark.createDataFrame(list(rows), "id string, part string, ts long, v string"), str(path), own)
        merged(*rows)

    def check() -> None:
        rows = [dict(zip(SCHEMA.names, row, strict=True)) for row in expected.values()]
        read = oracle.read(path)
        assert_same_rows(read, pa.Table.from_pylist(rows, SCHEMA), SCHEMA.names)
        assert_same_rows(HudiTable.for_path(str(path)).scan().to_arrow(), read, COMPARED)
        assert_same_rows(to_arrow(spark.read.format("hudi").load(str(path))), read, COMPARED)
        names = [file.name.lstrip(".") for part in "pq" for file in (path / part).glob("*_*") if file.suffix != ".crc"]
        groups = {name.split("_")[0] for name in names if not name.startswith("hoodie")}
        assert {name[8:] for name in groups} == {"-0000-0000-0000-000000000000-0"}

    keys = [f"k{number}" for number in range(8)]
    theirs(*((key, "p", 1, "first") for key in keys))
    ours(
        *((key, "p", 3, "ours") for key in keys[:4]),
        *((f"q{key}", "q", 2, "ours") for key in keys[:3]),
        other=lambda: theirs(
            *((key, "p", 2 + 2 * (number % 2), "theirs") for number, key in enumerate(keys)),
            *((f"q{key}", "q", 1 + 2 * number, "theirs") for number, key in enumerate(keys)),
        ),
    )
    check()
    compacts = {"hoodie__compact__inline": "true", "hoodie__compact__inline__max__delta__commits": "1"}
    ours(
        (keys[0], "p", 1, "late"),
        (keys[1], "p", 9, "ours"),
        ("new", "p", 1, "ours"),
        other=lambda: theirs((keys[0], "p", 8, "theirs"), (keys[2], "p", 8, "theirs"), **compacts),
    )
    assert any(name.endswith(".parquet") for name in map(str, path.glob("p/*")))
    check()
    ours((keys[3], "p", 9, "ours"), other=HudiTable.for_path(str(path)).services.compact)
    check()
    theirs((keys[3], "p", 10, "theirs"), ("new", "p", 0, "late"), **compacts)
    check()
    assert HudiTable.for_path(str(path)).validate_metadata().num_rows == 0
