"""Apache Hudi finds rows by a secondary index that we have built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.hudi_table import HudiTable
from pyhudi.metadata.keys import split_secondary_key
from pyhudi.metadata.table import MetadataTable
from pyhudi.table.metaclient import TableMetaClient
from tests.interop.in_turns import OPTIONS, SIMPLE, InTurns, rows
from tests.interop.oracle import Oracle

RECORDS = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
INDEX = "secondary_index_by_v"


def entries(path: Path) -> list[tuple[Any, str]]:
    client = TableMetaClient.open(str(path))
    index = MetadataTable.open(client.storage, client.config, client.active_timeline())
    values, records = split_secondary_key(index.scan(INDEX, []).combine_chunks()["key"].chunk(0))
    return sorted(zip(values.to_pylist(), records.to_pylist(), strict=True), key=repr)


def check(both: InTurns) -> None:
    both.check(SKIPPING)
    assert INDEX in both.oracle.metadata_partitions(both.path)
    assert entries(both.path) == sorted(((row[4], row[0]) for row in both.model.values()), key=repr)
    for value in ("a$", "b"):
        wanted = sorted(row[0] for row in both.model.values() if row[4] == value)
        theirs = both.oracle.read(both.path, SKIPPING, where=f"v = '{value}'")
        assert sorted(theirs["id"].to_pylist()) == wanted, value
        scan = HudiTable.for_path(str(both.path)).scan([("v", "=", value)], ["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == wanted, value
        assert INDEX in str(scan.plan().skipped)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_rows_by_our_index(oracle: Oracle, table_type: str, spark: SparkSession, tmp_path: Path) -> None:
    options = {**OPTIONS, **SIMPLE, **RECORDS, "hoodie.datasource.write.table.type": table_type}
    both = InTurns(tmp_path / "table", oracle, spark, options)
    both.write("ours", rows(0, 20, 1, "a$"))
    groups = {key: value for key, value in RECORDS.items() if "count" in key}
    HudiTable.for_path(str(both.path)).services.build_index("by_v", "v", options=groups, spark=spark)
    check(both)
