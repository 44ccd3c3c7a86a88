"""Numbers of buckets of partitions, changed by the procedure of each side while both go on writing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.bucket_tables import KEYS_AND_BUCKETS
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import PARALLELISM
from tests.rows import assert_same_rows

pytest.importorskip("sqlglot")

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
Row = tuple[str, str, int, str]


def _options(table_type: str) -> dict[str, str]:
    return {**KEYS_AND_BUCKETS, "hoodie.datasource.write.table.type": table_type, **PARALLELISM}


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", seldom("MERGE_ON_READ")])
def test_both_change_the_numbers(oracle: Oracle, spark: SparkSession, tmp_path: Path, table_type: str) -> None:
    path, given = tmp_path / "t", _options(table_type)
    expected: dict[str, Row] = {}

    def theirs(*rows: Row) -> None:
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
        # Apache Hudi reads the stored numbers where rules are given, whatever these are
        oracle.write(path, table, {**given, "hoodie.bucket.index.partition.expressions": "unused,1"})
        expected.update((row[0], row) for row in rows)

    def ours(*rows: Row) -> None:
        write(spark.createDataFrame(list(rows), "id string, part string, ts long, v string"), str(path), given)
        expected.update((row[0], row) for row in rows)

    def check() -> None:
        rows = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in expected.values()], SCHEMA)
        assert_same_rows(oracle.read(path), rows, SCHEMA.names)
        assert_same_rows(HudiTable.for_path(str(path)).scan().to_arrow(), rows, SCHEMA.names)

    def batch(version: int) -> list[Row]:
        return [(f"k{n}", "pq"[n % 2], version, f"v{version}") for n in range(0, 24, version)]

    ours(*batch(1))
    for side in (spark, oracle):
        side.sql(f"CREATE TABLE rescaled USING hudi LOCATION '{path}'")
    try:
        spark.sql(
            "CALL partition_bucket_index_manager(table => 'rescaled', overwrite => '^p$,5', bucket_number => 2, "
            "dry_run => false)"
        )
        check()
        theirs(*batch(2))
        check()
        ours(*batch(3))
        check()
        oracle.sql("CALL partition_bucket_index_manager(table => 'rescaled', add => '^q$,3', dry_run => false)")
        check()
        ours(*batch(4))
        theirs(*batch(5))
        check()
        shown = spark.sql("CALL partition_bucket_index_manager(table => 'rescaled', show_config => true)").first()
        assert '"expressions": "^q$,3;^p$,5"' in shown["details"]
    finally:
        spark.sql("DROP TABLE rescaled")
        oracle.sql("DROP TABLE rescaled")
