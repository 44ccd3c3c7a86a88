"""Archives of layout 1 are the same, whoever writes them, and Apache Hudi reads ours."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from pyhudi.api.hudi_table import HudiTable
from pyhudi.metadata.metadata_layout import metadata_layout
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.archive.archive_log_reader import archive_files
from pyhudi.timeline.archive.archived_timeline import read_archived_timeline
from pyhudi.timeline.commit_metadata import decode_commit
from pyhudi.timeline.timeline_layout import LAYOUT_1, LAYOUT_2, Layout
from tests.archival import archive_instants
from tests.interop.harness.alternating_writes import ARCHIVAL, OPTIONS, SIMPLE, AlternatingWrites, rows, table
from tests.interop.harness.oracle import Oracle, OracleError
from tests.unit.timeline.archive.test_archive_log_writer import records

WRITES = {
    **OPTIONS,
    **SIMPLE,
    **ARCHIVAL,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "2",
}
ARCHIVING = {**WRITES, "hoodie.archive.automatic": "true"}


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["0.15.0"], indirect=True)
def test_an_archive_of_layout_1(oracle: Oracle, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for n in range(9):
        operation = "insert_overwrite_table" if n == 4 else "upsert"
        found = table(rows(n, n + 12, n, f"v{n}"))
        oracle.write(theirs, found, {**WRITES, "hoodie.datasource.write.operation": operation})
        if n == 2:  # it seems to have failed, and is rolled back
            max((theirs / ".hoodie").glob("*.deltacommit")).unlink()
    shutil.copytree(theirs, ours)
    for n in range(9, 14):
        oracle.write(theirs, table(rows(n, n + 2, n, "archived")), ARCHIVING)
    seen = set()
    for layout in (LAYOUT_1, metadata_layout(6)):
        meant = archived(theirs, layout)
        storage = open_storage(ours, {})
        active = ActiveTimeline.load(storage, layout)
        gone = [i for i in active.timeline.completed() if (i.requested, i.action, "COMPLETED") in meant]
        assert len(gone) > 2
        archive_instants(active, gone)
        made = archived(ours, layout)
        assert made == {key: meant[key] for key in made}
        assert {i.requested for i in gone} <= {key[0] for key in made}
        seen |= {key[1:] for key in made}
    assert {("deltacommit", "INFLIGHT"), ("compaction", "REQUESTED"), ("replacecommit", "COMPLETED")} <= seen
    reads(oracle, ours)


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_upgraded_by_apache_hudi(oracle: Oracle, tmp_path: Path) -> None:
    """An archive of ours becomes one of layout 2, which knows what was archived when."""
    old = {**WRITES, "hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}
    for n in range(4):
        version = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
        oracle.write(tmp_path, table(rows(n, n + 12, n, f"v{n}")), old | version)
    storage = open_storage(tmp_path, {})
    # not everybody's archive of layout 1 is in the same folder
    active = TableMetaClient.open(storage).active_timeline()
    gone = list(active.timeline.completed())[:3]
    content = {i.requested: active.commit_metadata(i) for i in gone}
    archive_instants(active, gone)
    completed = {key[0]: row["stateTransitionTime"] for key, row in archived(tmp_path, active.layout).items()}
    oracle.write(tmp_path, table(rows(0, 3, 9, "after")), old)
    assert TableMetaClient.open(storage).config.version == 9
    found = {row["requested"]: row for row in read_archived_timeline(storage, LAYOUT_2).to_pylist()}
    assert {requested: row["completion"] for requested, row in found.items()} == completed
    for requested, meant in content.items():
        metadata = decode_commit(found[requested]["metadata"])
        assert metadata.operation == meant.operation
        assert metadata.stats["path"].equals(meant.stats["path"])


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_a_compaction_that_was_archived_before_a_savepoint(oracle: Oracle, tmp_path: Path) -> None:
    """Apache Hudi takes the base files of the compaction for uncommitted ones, also in a table of its own."""
    opts = {**OPTIONS, **SIMPLE, **ARCHIVAL, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    opts |= {"hoodie.archive.automatic": "true", "hoodie.archive.beyond.savepoint": "true"}
    oracle.write(tmp_path, table(rows(0, 12, 0, "first")), opts)
    first = oracle.timeline(tmp_path)[0].requested
    oracle.sql(
        f"CREATE TABLE saved USING hudi LOCATION '{tmp_path}'",
        f"CALL create_savepoint(table => 'saved', commit_time => '{first}')",
    )
    oracle.sql("DROP TABLE saved")
    compacting = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    expected = {row[0]: row for row in rows(0, 12, 0, "first")}
    for n in range(1, 5):
        changed = rows(n, n + 6, n, f"v{n}")
        oracle.write(tmp_path, table(changed), opts if n % 2 else {**opts, **compacting})
        expected |= {row[0]: row for row in changed}
    assert "commit" not in {i.action for i in oracle.timeline(tmp_path)}
    assert values(HudiTable.for_path(str(tmp_path)).scan().to_arrow()) == sorted(row[4] for row in expected.values())
    stale = values(oracle.read(tmp_path))
    assert stale.count("first") > sum(row[4] == "first" for row in expected.values())


@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_updates_that_were_archived_later_than_services(oracle: Oracle, spark: SparkSession, tmp_path: Path) -> None:
    """Compactions of 1.2.0 leave out the log files of archived delta commits that are later than the first instant of
    the active timeline. No clean, restore or index build stays there."""
    by_hand = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits": "3"}
    both = AlternatingWrites(tmp_path / "t", oracle, spark, {**OPTIONS, **SIMPLE, **ARCHIVAL, **by_hand, **more})
    both.write_keys("ours", 0, 20)
    services = HudiTable.for_path(str(both.path), both.options).services
    for n in range(2):
        both.write_keys("ours", n, n + 6)
        assert services.compact({"hoodie.compact.inline.max.delta.commits": "1"})
    both.write_keys("ours", 2, 4)
    assert services.clean()
    services.schedule_index("record_index")
    services.run_index(spark=spark)
    both.write_keys("ours", 3, 5)
    saved, model = HudiTable.for_path(str(both.path)).latest_instant, dict(both.model)
    both.write_keys("ours", 4, 9)
    services.restore(saved)
    both.model = model
    for n in range(7):
        both.write_keys("ours", n, n + 3)
    assert {"clean", "restore", "indexing"} < {i.action for i in oracle.timeline(both.path)}
    assert services.archive()
    actions = [i.action for i in oracle.timeline(both.path)]
    assert actions == ["deltacommit"] * (len(actions) - 1) + ["clean"]  # in place of the last one
    both.check()
    first = str(HudiTable.for_path(both.path).history(archived=True)["requested"][-1])
    with pytest.raises(OracleError, match=r"[Cc]leaner cleaned up the timestamp"):
        oracle.read(both.path, {"as.of.instant": first})
    oracle.sql(
        f"CREATE TABLE compacted USING hudi LOCATION '{both.path}'",
        "CALL run_compaction(op => 'scheduleandexecute', table => 'compacted', "
        "options => 'hoodie.compact.inline.max.delta.commits=1')",
        "DROP TABLE compacted",
    )
    assert "commit" in {i.action for i in oracle.timeline(both.path)}
    both.check()
    both.check({"hoodie.metadata.enable": "true"}, keys=("k001", "k015"))
    oracle.sql(
        f"CREATE TABLE downgraded USING hudi LOCATION '{both.path}'",
        "CALL downgrade_table(table => 'downgraded', to_version => 'SIX')",
        "DROP TABLE downgraded",
    )
    assert TableMetaClient.open(both.path).config.version == 6
    both.check()


def values(found: pa.Table) -> list[str]:
    return sorted(found["v"].to_pylist())


def archived(path: Path, layout: Layout) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The records of an archive by instant, action and state."""
    storage = open_storage(path, {})
    found = [row for file in archive_files(storage, layout) for block in records(storage, file) for row in block]
    return {(row["commitTime"], row["actionType"], row["actionState"]): row for row in found}


def reads(oracle: Oracle, path: Path) -> None:
    """Apache Hudi lists the archived commits, and writes on."""
    history = read_archived_timeline(open_storage(path, {}), LAYOUT_1).to_pylist()
    for row in history:
        if row["action"] == "replacecommit":  # Apache Hudi would have cleaned before
            replaced = decode_commit(row["metadata"]).replaced
            assert replaced is not None
            for file_id in replaced["file_id"].to_pylist():
                for file in path.glob(f"*/*{file_id}*"):
                    file.unlink()
    told = oracle.sql(
        f"CREATE TABLE archive_of_ours USING hudi LOCATION '{path}'",
        "CALL show_archived_commits(table => 'archive_of_ours', limit => 100, start_ts => '0', end_ts => '9')",
    )
    oracle.sql("DROP TABLE archive_of_ours")
    commits = {row["requested"] for row in history if row["action"] in ("commit", "deltacommit", "replacecommit")}
    assert set(told["commit_time"].to_pylist()) == commits
    alone = {"hoodie.metadata.enable": "false"}
    oracle.write(path, table(rows(0, 30, 20, "after")), ARCHIVING | alone)
    assert oracle.read(path, alone)["v"].to_pylist().count("after") == 30
