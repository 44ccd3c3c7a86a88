"""Tables whose keys and partition paths a Java class of the user makes, and a registered generator in Python."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_METADATA_TABLE, PARALLELISM
from tests.key_generators import JAVA, OPTIONS, TenantKeyGenerator, registered

SCHEMA = pa.schema(
    [("tenant", pa.string()), ("id", pa.int64()), ("day", pa.string()), ("ts", pa.int64()), ("v", pa.int64())]
)
FIRST = [("Acme", 1, "2024-05-03", 1, 10), ("acme", 2, "2024-05-04", 1, 20), ("Bolt", 1, "2024-06-01", 1, 30)]
SECOND = [("ACME", 1, "2024-05-09", 2, 11), ("bolt", 2, "2024-06-01", 2, 40)]
THIRD = [("aCME", 2, "2024-05-30", 3, 22), ("Cap", 1, "2024-07-01", 3, 50)]
EXPECTED = {
    ("acme-1", "2024/05", "ACME", 1, 11),
    ("acme-2", "2024/05", "aCME", 2, 22),
    ("bolt-1", "2024/06", "Bolt", 1, 30),
    ("bolt-2", "2024/06", "bolt", 2, 40),
    ("cap-1", "2024/07", "Cap", 1, 50),
}
NAMES = ["_hoodie_record_key", "_hoodie_partition_path", "tenant", "id", "v"]


def rows(values: list[tuple[str, int, str, int, int]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in values], SCHEMA)


def as_set(table: pa.Table) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in table.select(NAMES).to_pylist()}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", seldom("MERGE_ON_READ")])
@pytest.mark.parametrize(
    ("oracle", "first"),
    [
        ("0.15.0", "ours"),
        seldom(("0.15.0", "apache")),
        seldom(("1.0.2", "ours")),  # it creates no table with such a generator, but writes those of others
        seldom(("1.2.0", "ours")),
        ("1.2.0", "apache"),
    ],
    indirect=["oracle"],
)
def test_in_turns(oracle: Oracle, spark: SparkSession, tmp_path: Path, first: str, table_type: str) -> None:
    path = tmp_path / "t"
    version = {"0.15.0": {"hoodie.write.table.version": "6"}, "1.0.2": {"hoodie.write.table.version": "8"}}
    options = {
        **OPTIONS,
        **PARALLELISM,
        **NO_METADATA_TABLE,
        **version.get(oracle.release, {}),
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.operation": "upsert",
    }
    oracle.add_class(JAVA)
    with registered(TenantKeyGenerator()):
        for turn, values in enumerate((FIRST, SECOND, THIRD)):
            if (turn % 2 == 0) == (first == "apache"):
                oracle.write(path, rows(values), options)
            else:
                write(spark.createDataFrame(rows(values).to_pandas()).select(*SCHEMA.names), str(path), options)
    theirs = oracle.read(path, columns=NAMES)
    assert as_set(theirs) == EXPECTED
    assert as_set(HudiTable.for_path(str(path)).scan(columns=NAMES).to_arrow()) == EXPECTED
