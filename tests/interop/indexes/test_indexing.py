"""The indexing action in turns: one side plans, the other one builds, and both write before, meanwhile and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.services.indexing import async_indexer
from tests.cases import seldom
from tests.index_contents import indexed_locations, secondary_entries, stored_locations
from tests.interop.harness.alternating_writes import OPTIONS, SIMPLE, VERSIONS, AlternatingWrites
from tests.interop.harness.oracle import Oracle
from tests.properties import FACTOR

LOCK = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
RECORDS = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.record.index.max.filegroup.count": "2",
}
BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}
WANTED = {"record_index": RECORDS, "bloom_filters": BLOOM}
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true", **RECORDS}
CASES = [
    ("0.15.0", "MERGE_ON_READ", "record_index", "bloom_filters"),
    seldom(("1.0.2", "COPY_ON_WRITE", "bloom_filters", "record_index")),
    seldom(("1.2.0", "MERGE_ON_READ", "record_index", "bloom_filters")),
]


@pytest.mark.parametrize(("oracle", "table_type", "ours", "theirs"), CASES, indirect=["oracle"])
def test_in_turns(
    oracle: Oracle,
    table_type: str,
    ours: str,
    theirs: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``ours`` is the index that they plan and we build, ``theirs`` the other one."""
    kind = {"hoodie.metadata.enable": "true", "hoodie.datasource.write.table.type": table_type}
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **kind})
    path, write = str(both.path), both.write_keys

    write("theirs", 0, 20)
    write("ours", 10, 25)
    services = HudiTable.for_path(path).services
    planned = services.schedule_index(theirs, options=WANTED[theirs])
    write("ours", 20, 30)
    both.options |= WANTED[theirs]
    oracle.index(path, {**both.options, **LOCK}, instant=planned.instant)
    _check(both, theirs)

    asked = {**both.options, **WANTED[ours], "hoodie.metadata.index.async": "true"}
    instant = oracle.index(path, {**asked, **LOCK}, ours.upper(), run=False)
    write("theirs", 25, 35)
    real: Callable[[Any], Any] = async_indexer.write_index_files

    def beside(begun: Any) -> Any:
        found = real(begun)
        # without the last of them Apache Hudi builds by itself, at once, what is being built, and without the others it
        # drops it; before somebody builds it, 1.2.0 fails with them
        both.options = asked
        write("theirs", 30, 45)
        write("ours", 5, 8)
        return found

    monkeypatch.setattr(async_indexer, "write_index_files", beside)
    assert services.run_index(instant, WANTED[ours], spark=spark).partitions == (ours,)
    assert not services.pending_indexes()
    _check(both, theirs, ours)
    both.check(SKIPPING, ("k024", "k044"))

    write("theirs", 15, 40)
    write("ours", 0, 4, "delete")
    if FACTOR >= 1:  # the other way round
        write("ours", 2, 30)
        write("theirs", 3, 6, "delete")
    _check(both, theirs, ours)
    both.check(SKIPPING, ("k003", "k007"))


def _check(both: AlternatingWrites, *indexes: str) -> None:
    """The indexes are in use, and say what is in the table."""
    path = str(both.path)
    table = HudiTable.for_path(path)
    assert table.config.version == VERSIONS[both.oracle.release]
    assert not table.config.metadata_partitions_inflight
    assert set(indexes) <= set(both.oracle.metadata_partitions(path))
    assert not table.validate_metadata().num_rows
    if "record_index" in indexes:
        assert indexed_locations(path) == stored_locations(path)
        assert {key for key, _ in indexed_locations(path)} == set(both.model)
    keys = ["k003", "k007", "k044"]
    assert sorted(table.lookup(keys, ["id"])["id"].to_pylist()) == [key for key in keys if key in both.model]


UPPER: dict[str, Any] = {"using": "column_stats", "index_options": {"expr": "upper"}}
NAMED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "secondary_index_by_v": ("by_v", "v", {}),
    # of a column of its own: Apache Hudi takes its values for those of the column itself
    "expr_index_upper_id": ("upper_id", "id", UPPER),
}
GROUPS = {name: value for name, value in RECORDS.items() if "count" in name}
NAMED_CASES = [
    seldom(("1.0.2", "COPY_ON_WRITE", "expr_index_upper_id")),
    ("1.2.0", "MERGE_ON_READ", "secondary_index_by_v"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("oracle", "table_type", "index"), NAMED_CASES, indirect=["oracle"])
def test_apache_hudi_builds_what_is_planned_here(
    oracle: Oracle, table_type: str, index: str, spark: SparkSession, tmp_path: Path
) -> None:
    both = _of_two(oracle, table_type, spark, tmp_path)
    path, write = str(both.path), both.write_keys
    services = HudiTable.for_path(path).services
    name, column, more = NAMED[index]
    planned = services.schedule_index(name, column, options=GROUPS, **more)
    write("ours", 20, 30)
    assert planned.partitions == (index,)
    oracle.index(path, {**both.options, **LOCK}, instant=planned.instant)
    _check_named(both, index)


@pytest.mark.parametrize(
    ("oracle", "table_type", "index"),
    [
        seldom(("1.2.0", "COPY_ON_WRITE", "expr_index_upper_id")),
        seldom(("1.2.0", "MERGE_ON_READ", "secondary_index_by_v")),
    ],
    indirect=["oracle"],
)
def test_what_apache_hudi_plans_is_built_here(
    oracle: Oracle, table_type: str, index: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Its CREATE INDEX does all at once: it defines the index, plans it and builds it."""
    both = _of_two(oracle, table_type, spark, tmp_path)
    path, write = str(both.path), both.write_keys
    _, column, more = NAMED[index]
    oracle.define_index(path, index, more.get("using", "secondary_index"), column, more.get("index_options", {}))
    kind = "SECONDARY_INDEX" if index.startswith("secondary") else "EXPRESSION_INDEX"
    instant = oracle.index(path, {**both.options, **LOCK, "hoodie.index.name": index}, kind, run=False)
    # with the definition there, a write of Apache Hudi would build the index at once
    write("ours", 20, 30)
    services = HudiTable.for_path(path).services
    assert [(plan.instant, plan.partitions) for plan in services.pending_indexes()] == [(instant, (index,))]
    assert services.run_index(instant, GROUPS, spark=spark).partitions == (index,)
    assert not services.pending_indexes()
    _check_named(both, index)
    write("theirs", 25, 45)
    write("ours", 0, 4, "delete")
    write("theirs", 40, 46)
    _check_named(both, index)


def _of_two(oracle: Oracle, table_type: str, spark: SparkSession, tmp_path: Path) -> AlternatingWrites:
    """A table with a record index that both have written."""
    kind = {
        "hoodie.metadata.enable": "true",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.embed.timeline.server": "true",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.compact.inline": "false",
    }
    both = AlternatingWrites(tmp_path / "table", oracle, spark, {**OPTIONS, **SIMPLE, **RECORDS, **kind})
    both.write_keys("theirs", 0, 20)
    both.write_keys("ours", 10, 25)
    return both


def _check_named(both: AlternatingWrites, *indexes: str) -> None:
    """The indexes are in use on both sides, and say what is in the table."""
    path = str(both.path)
    table = HudiTable.for_path(path)
    assert not table.config.metadata_partitions_inflight
    assert set(indexes) <= set(both.oracle.metadata_partitions(path))
    assert not table.validate_metadata().num_rows
    if "secondary_index_by_v" in indexes:
        assert secondary_entries(both.path) == sorted(((row[4], row[0]) for row in both.model.values()), key=repr)
    asked = {
        f"v = '{value}'": lambda row, value=value: row[4] == value for value in {r[4] for r in both.model.values()}
    }
    keys = ["k003", "k024", "k044"]
    asked |= {f"upper(id) = '{key.upper()}'": lambda row, key=key: row[0] == key for key in keys}
    for where, meets in asked.items():
        wanted = sorted(row[0] for row in both.model.values() if meets(row))
        theirs = both.oracle.read(path, SKIPPING, where=where)
        assert sorted(theirs["id"].to_pylist()) == wanted, where
        scan = table.scan(where, ["id"])
        assert sorted(row.id for row in scan.to_spark(both.spark).collect()) == wanted, where
        (used,) = (name for name in NAMED if (name == "expr_index_upper_id") == where.startswith("upper"))
        assert used not in indexes or used in str(scan.plan().skipped), where
