"""Secondary indexes in turns: Apache Hudi finds rows by the index that we have built and kept, and goes on with it, and
we do with its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from tests.cases import every, seldom
from tests.index_contents import secondary_entries
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, VERSIONS, AlternatingWrites, rows
from tests.interop.harness.oracle import Oracle
from tests.interop.harness.scenarios import NO_COLUMN_STATISTICS

RECORDS = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
INDEX = "secondary_index_by_v"
CASES = [
    seldom(("1.0.2", "COPY_ON_WRITE", "ours")),
    seldom(("1.0.2", "COPY_ON_WRITE", "theirs")),
    seldom(("1.1.1", "MERGE_ON_READ", "theirs")),
    seldom(("1.2.0", "COPY_ON_WRITE", "ours")),
    seldom(("1.2.0", "COPY_ON_WRITE", "theirs")),
    ("1.2.0", "MERGE_ON_READ", "options"),
    seldom(("1.2.0", "MERGE_ON_READ", "ours")),
    seldom(("1.2.0", "MERGE_ON_READ", "theirs")),
]


def check(both: AlternatingWrites) -> None:
    both.check(SKIPPING)
    assert INDEX in both.oracle.metadata_partitions(both.path)
    assert secondary_entries(both.path) == sorted(((row[4], row[0]) for row in both.model.values()), key=repr)
    for value in every(2, sorted({row[4] for row in both.model.values()})):
        wanted = sorted(row[0] for row in both.model.values() if row[4] == value)
        theirs = both.oracle.read(both.path, SKIPPING, where=f"v = '{value}'".replace("\\", "\\\\"))
        assert sorted(theirs["id"].to_pylist()) == wanted, value
        scan = HudiTable.for_path(str(both.path)).scan([("v", "=", value)], ["id"])
        assert sorted(scan.to_arrow()["id"].to_pylist()) == wanted, value
        assert INDEX in str(scan.plan().skipped)


@pytest.mark.parametrize(("oracle", "table_type", "builder"), CASES, indirect=["oracle"])
def test_in_turns(oracle: Oracle, table_type: str, builder: str, spark: SparkSession, tmp_path: Path) -> None:
    options = {**OPTIONS, **SIMPLE, **RECORDS, **NO_COLUMN_STATISTICS, "hoodie.datasource.write.table.type": table_type}
    # without it, 1.2.0 cannot write to a table with a secondary index (NullPointerException in its tasks)
    options["hoodie.embed.timeline.server"] = "true"
    # 1.0.2 does not find values with these letters
    first, third = ("a$", "c\\d") if oracle.release != "1.0.2" else ("a", "c")
    if by_options := builder == "options":  # of the first write, and of those of Apache Hudi later on
        builder = "ours"
        options |= {"hoodie.metadata.index.secondary.column": "v", "hoodie.index.name": "by_v"}
    other = {"ours": "theirs", "theirs": "ours"}[builder]
    both = AlternatingWrites(tmp_path / builder, oracle, spark, options)
    both.write(builder, rows(0, 20, 1, first))
    if builder == "ours" and not by_options:
        HudiTable.for_path(str(both.path)).services.build_index(
            "by_v", "v", options={k: v for k, v in RECORDS.items() if "count" in k}, spark=spark
        )
    elif builder == "theirs":
        _create(both)
    check(both)
    both.write(other, rows(10, 30, 2, "b"))
    check(both)
    both.write(builder, rows(5, 35, 3, third))
    both.write(other, rows(0, 4, 4, ""), "delete")
    both.write(builder, rows(2, 8, 5, "again"))
    check(both)
    assert VERSIONS[oracle.release] == HudiTable.for_path(str(both.path)).config.version


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_several_indexes(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Of several indexes of a merge-on-read table, Apache Hudi keeps the first up to date, and its queries by another
    miss updated rows."""
    options = {**OPTIONS, **SIMPLE, **RECORDS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**options, "hoodie.embed.timeline.server": "true"})
    both.write("theirs", rows(0, 20, 1, "a"))
    _create(both, "v", "ts")
    both.write("theirs", rows(5, 10, 2, "b"))
    updated = [f"k{n:03d}" for n in range(5, 10)]
    for column, value, found in (("v", "b", updated), ("ts", 2, [])):
        theirs = oracle.read(both.path, SKIPPING, where=f"{column} = '{value}'")
        assert sorted(theirs["id"].to_pylist()) == found
        ours = HudiTable.for_path(str(both.path)).scan([(column, "=", value)], ["id"]).to_arrow()
        assert sorted(ours["id"].to_pylist()) == updated


def _create(both: AlternatingWrites, *columns: str) -> None:
    """Let Apache Hudi build the index of ``v``, or of other columns."""
    settings = {k: v for k, v in {**RECORDS, "hoodie.write.lock.provider": _LOCK}.items() if "type" not in k}
    both.oracle.sql("DROP TABLE IF EXISTS indexed")
    try:
        both.oracle.sql(
            f"CREATE TABLE indexed USING hudi LOCATION '{both.path}'",
            *(f"SET {key}={value}" for key, value in settings.items()),
            *(f"CREATE INDEX by_{column} ON indexed ({column})" for column in columns or ("v",)),
        )
    finally:
        both.oracle.sql("DROP TABLE IF EXISTS indexed", *(f"RESET {key}" for key in settings))


_LOCK = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
