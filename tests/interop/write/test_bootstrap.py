"""Bootstrapped tables of either side, read and written on by the other."""

from __future__ import annotations

import contextlib
import itertools
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import TransactionError
from tests.cases import seldom
from tests.interop.harness.oracle import Oracle, OracleError
from tests.unit.services.test_bootstrap import make_source, options_for

MODES = {
    "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.BootstrapRegexModeSelector",
    "hoodie.bootstrap.mode.selector.regex": ".*01-01",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.metadata.index.column.stats.enable": "false",  # which Apache Hudi refuses here
    "hoodie.datasource.write.operation": "bootstrap",
    "hoodie.bootstrap.parallelism": "2",
}
UPSERT = {"hoodie.datasource.write.operation": "upsert", "hoodie.table.name": "t"}
VERSIONS = {"1.2.0": "9", "1.0.2": "8", "0.15.0": "6"}
OFTEN = (("1.2.0", "COPY_ON_WRITE", False), ("1.2.0", "MERGE_ON_READ", True))
CASES = [
    case if case in OFTEN else seldom(case)
    for case in itertools.product(VERSIONS, ("COPY_ON_WRITE", "MERGE_ON_READ"), (True, False))
]


def changes(day: str, number: int) -> pa.Table:
    """An update of a row of `make_source`, and a new row."""
    rows = {
        "id": [f"{day}-0{number}", f"{day}-new{number}"],
        "n": pa.array([1000, 1001], pa.int64()),
        "ts": pa.array([5, 5], pa.int64()),
        "items": [[{"a": 1, "b": "x"}], []],
        "day": [day, day],
    }
    return pa.table(rows, schema=pa.schema([*empty().schema]))


def empty() -> pa.Table:
    item = pa.struct([("a", pa.int64()), ("b", pa.string())])
    number, text = pa.int64(), pa.string()
    names = [("id", text), ("n", number), ("ts", number), ("items", pa.list_(item)), ("day", text)]
    return pa.schema(names).empty_table()


def rows_of(found: pa.Table) -> list[dict[str, Any]]:
    """The rows by key, without what tells them apart from those of the other side."""
    names = [n for n in found.column_names if n not in ("_hoodie_commit_seqno", "_hoodie_file_name")]
    return sorted(found.select(names).to_pylist(), key=lambda row: str(row["id"]))


def agree(oracle: Oracle, spark: Any, table: Path) -> list[dict[str, Any]]:
    """Both sides read the same rows."""
    theirs = rows_of(oracle.read(table))
    assert rows_of(HudiTable.for_path(str(table)).scan().to_arrow()) == theirs
    own = rows_of(pa.Table.from_batches(spark.read.format("hudi").load(str(table))._collect_as_arrow()))
    assert own == theirs
    return theirs


@pytest.mark.parametrize(("oracle", "table_type", "ours"), CASES, indirect=["oracle"])
def test_bootstrapped_tables_in_turns(oracle: Oracle, table_type: str, ours: bool, spark: Any, tmp_path: Path):
    source, table = tmp_path / "source", tmp_path / "table"
    made = make_source(source, hive=True)
    shutil.rmtree(source / "_temporary")  # where Apache Hudi looks, too
    options = {
        **options_for(source),
        **MODES,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": VERSIONS[oracle.release],
    }
    if not ours and oracle.release != "1.2.0":  # which forget to commit the rows that they copy
        del options["hoodie.bootstrap.mode.selector"]
    instants = {"00000000000001"} | ({"00000000000002"} if "hoodie.bootstrap.mode.selector" in options else set())
    if ours:
        pyhudi.bootstrap_table(table, options, schema=empty().schema, spark=spark)
    else:
        oracle.write(table, empty(), {k: str(v) for k, v in options.items()}, "overwrite")
    found = agree(oracle, spark, table)
    own = [{name: value for name, value in row.items() if not name.startswith("_hoodie")} for row in found]
    assert own == sorted(made, key=lambda row: str(row["id"]))
    assert {row["_hoodie_commit_time"] for row in found} == instants
    for number, (writes_ours, day) in enumerate([(True, "2024-01-01"), (False, "2024-01-01"), (True, "2024-01-02")]):
        rows = changes(day, number)
        if writes_ours:
            file = tmp_path / f"{number}.parquet"
            pq.write_table(rows, file)
            spark.read.parquet(str(file)).write.format("hudi").options(**UPSERT).mode("append").save(str(table))
        else:
            oracle.write(table, rows, UPSERT)
        after = agree(oracle, spark, table)
        assert len(after) == len(made) + number + 1
        assert sum(row["n"] >= 1000 for row in after) == 2 * (number + 1)
    assert HudiTable.for_path(str(table)).validate_metadata().num_rows == 0
    calls = (f"CREATE TABLE IF NOT EXISTS b{id(made)} USING hudi LOCATION '{table}'",)
    show = "CALL show_bootstrap_mapping({} => '{}', sort_by => 'source_file')"
    theirs = oracle.sql(*calls, show.format("table", f"b{id(made)}"))
    assert spark.sql(show.format("path", table)).toPandas().values.tolist() == theirs.to_pandas().values.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_no_write_after_a_bootstrap_that_was_interrupted(oracle: Oracle, spark: Any, tmp_path: Path):
    """Apache Hudi's upsert takes the rows away that were bootstrapped; ours leaves all as it is."""
    source, table = tmp_path / "source", tmp_path / "table"
    made = make_source(source, hive=True)
    shutil.rmtree(source / "_temporary")
    options = {key: str(value) for key, value in {**options_for(source), **MODES}.items()}
    oracle.write(table, empty(), options, "overwrite")
    (completed,) = (table / ".hoodie/timeline").glob("00000000000002_*.commit")
    completed.unlink()
    rows = changes("2024-01-01", 0)
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    with pytest.raises(TransactionError, match=r"instant 00000000000002.*run the same bootstrap again"):
        frame.write.format("hudi").options(**UPSERT).mode("append").save(str(table))
    shutil.copytree(table, tmp_path / "theirs")
    with contextlib.suppress(OracleError):
        oracle.write(tmp_path / "theirs", rows, UPSERT)
    assert oracle.read(tmp_path / "theirs").num_rows < 60
    pyhudi.bootstrap_table(table, options, schema=empty().schema, spark=spark)
    frame.write.format("hudi").options(**UPSERT).mode("append").save(str(table))
    assert len(agree(oracle, spark, table)) == len(made) + 1
