"""Compaction run by threads of this process: the same rows in new base files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi import register_merger, unregister_merger
from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConfigError, HudiError, InstantNotFoundError, ServiceAfterCommitError, UnsupportedTableError
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.services.compaction.compaction_job import CompactionJob
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner
from pyhudi.services.post_commit_services import PostCommitServices
from pyhudi.storage import open_storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action
from pyhudi.transaction.transaction import Transaction
from tests.golden.expected import NAMES, unpack
from tests.unit.merge.mergers import First
from tests.unit.services.compaction.compaction_tables import IN_THREADS, SMALL, slices
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, SCHEMA, MorTable, row

NOT_WRITTEN = ("v5_mor_metadata", "v9_mor_mixed_formats")
MOR = [name for name in NAMES if "_mor_" in name and name not in NOT_WRITTEN]


def test_rows_stay_what_they_are(mor: MorTable):
    before = mor.table.scan().to_arrow().sort_by("_hoodie_record_key")
    result = mor.table.services.compact()
    after = mor.table.scan().to_arrow().sort_by("_hoodie_record_key")
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    assert {r["id"]: r["v"] for r in mor.rows().values() if r["v"] != "base"} == {
        "a0": "second",
        "b0": "first",
        "a9": "new",
    }
    assert mor.table.scan(read_optimized=True).to_arrow().sort_by("_hoodie_record_key") == after
    for one in slices(mor):
        assert one["log_paths"] == []
        assert one["base_instant"] == result.instants[0]
        footer = read_footer(mor.root / one["base_path"])
        here = after.filter(pc.equal(after["p"], one["partition"]))["_hoodie_record_key"].to_pylist()
        assert (footer.min_key, footer.max_key) == (min(here), max(here))
        bloom = footer.bloom_filter()
        assert bloom is not None
        assert all(bloom.might_contain(pa.array(here)))
        assert set(after["_hoodie_file_name"].to_pylist()) >= {one["base_path"].rpartition("/")[2]}


def test_what_the_commit_says(mor: MorTable):
    result = mor.table.services.compact()
    active = mor.client.active_timeline()
    (instant,) = [i for i in active.timeline if i.action == Action.COMMIT]
    metadata = active.commit_metadata(instant)
    assert (metadata.operation, metadata.compacted, instant.requested) == ("COMPACT", True, result.instants[0])
    assert metadata.schema_json is not None
    stats = {s["partitionPath"]: s for s in metadata.stats.to_pylist()}
    wanted = {
        "numWrites": 5,
        "numUpdateWrites": 1,
        "numDeletes": 1,
        "numInserts": 1,
        "totalLogRecords": 5,
        "totalUpdatedRecordsCompacted": 4,
        "totalLogFilesCompacted": 2,
        "totalLogBlocks": 3,
        "prevBaseFile": f"{FILE_IDS['a']}_0-0-0_{stats['a']['prevCommit']}.parquet" if mor.version >= 8 else None,
    }
    assert {name: stats["a"][name] for name in wanted} == wanted
    assert stats["a"]["fileSizeInBytes"] == (mor.root / stats["a"]["path"]).stat().st_size
    assert not list((mor.root / ".hoodie" / ".temp").iterdir())
    names = {path.name.split(".", 1)[1] for path in (mor.root / active.layout.folder).iterdir() if path.is_file()}
    assert {"compaction.requested", "compaction.inflight", "commit"} <= names


def test_time_travel_and_changes(mor: MorTable):
    """A compaction is no change: it shows in no incremental query, and the past stays what it was."""
    instant = mor.table.latest_instant
    past = mor.rows()
    mor.table.services.compact()
    bookmark = mor.table.completion_of(mor.table.latest_instant)
    assert mor.table.scan(begin=bookmark).to_arrow().num_rows == 0
    as_of = mor.table.scan(as_of=instant, columns=["id", "p", "o", "v"]).to_arrow().to_pylist()
    assert {r["id"]: r for r in as_of} == past
    changed = mor.table.scan(begin=mor.table.completion_of(instant)).to_arrow()
    assert changed.num_rows == 0


def test_nothing_to_do(mor: MorTable):
    assert mor.table.services.compact().num_log_files == 4
    again = mor.table.services.compact()
    assert not again
    assert repr(again).startswith(
        "CompactionResult(compaction: nothing done; there are no log files to merge; requested"
    )
    assert not mor.table.services.run_compaction()
    with pytest.raises(InstantNotFoundError, match="20200101000000000"):
        mor.table.services.run_compaction("20200101000000000")


def test_only_if_due(mor: MorTable):
    early = mor.table.services.compact(only_if_due=True)
    assert not early
    assert early.reason.startswith("not due: ")
    plan = mor.table.services.schedule_compaction(only_if_due=True)
    assert plan.instant is None
    assert plan.reason.startswith("not due: 3 delta commits since")
    three = {"hoodie.compact.inline.max.delta.commits": "3"}
    assert mor.table.services.compact(three, only_if_due=True)


def test_dry_runs_leave_nothing(mor: MorTable):
    before = sorted(mor.root.rglob("*"))
    assert len(mor.table.services.compact(dry_run=True)) == 2
    assert sorted(mor.root.rglob("*")) == before


def test_what_was_replaced_is_not_compacted(mor: MorTable):
    """A plan goes on when a file group of it has been replaced, and when the cleaner has taken its files away."""
    services = mor.table.services
    plan = services.schedule_compaction()
    tx = Transaction.begin(mor.client, Action.REPLACE_COMMIT, "DELETE_PARTITION", mor.options)
    tx.to_inflight(CommitMetadata("DELETE_PARTITION"))
    gone = pa.table({"partition": ["b"], "file_id": [FILE_IDS["b"]]})
    tx.commit(CommitMetadata("DELETE_PARTITION", extra={"schema": to_avro(SCHEMA, "t")}, replaced=gone))
    shutil.rmtree(mor.root / "b")
    before = mor.rows()
    assert set(before) == {"a0", "a1", "a3", "a4", "a9"}
    result = services.run_compaction()
    assert result.instants == (plan.instant,)
    assert result.stats["partitionPath"].to_pylist() == ["a"]
    assert mor.rows() == before
    assert not services.pending_compactions()
    assert all(not one["log_paths"] for one in slices(mor))


def test_nothing_of_a_plan_is_left(mor: MorTable):
    services = mor.table.services
    plan = services.schedule_compaction()
    tx = Transaction.begin(mor.client, Action.REPLACE_COMMIT, "DELETE_PARTITION", mor.options)
    tx.to_inflight(CommitMetadata("DELETE_PARTITION"))
    gone = pa.table({"partition": list(FILE_IDS), "file_id": list(FILE_IDS.values())})
    tx.commit(CommitMetadata("DELETE_PARTITION", extra={"schema": to_avro(SCHEMA, "t")}, replaced=gone))
    for partition in FILE_IDS:
        shutil.rmtree(mor.root / partition)
    assert services.run_compaction().instants == (plan.instant,)
    assert not services.pending_compactions()
    assert mor.rows() == {}


def test_a_slice_of_logs_only_and_one_that_loses_all_rows(tmp_path: Path):
    mor = MorTable(tmp_path / "table", 9, options=FAST | SMALL)
    mor.load([row("a0", "a", 1, "x")])
    (mor.root / "b" / f"{FILE_IDS['b']}_0-0-0_{mor.table.latest_instant}.parquet").unlink()
    mor.delta([row("b0", "b", 1, "only in logs")], [("a0", "a", 2)])
    result = mor.table.services.compact()
    stats = {s["partitionPath"]: s for s in result.stats.to_pylist()}
    assert (stats["b"]["prevCommit"], stats["b"]["numInserts"], stats["a"]["numWrites"]) == ("null", 1, 0)
    assert mor.rows() == {"b0": row("b0", "b", 1, "only in logs")}
    assert mor.table.scan(read_optimized=True).to_arrow()["_hoodie_commit_time"].to_pylist() != list(result.instants)
    mor.delta([row("a0", "a", 1, "back")])
    mor.table.services.compact()
    assert mor.rows()["a0"]["v"] == "back"


@pytest.mark.parametrize("name", MOR)
def test_golden_tables(name: str, tmp_path: Path):
    """Whatever Apache Hudi wrote into logs is in the base files afterwards."""
    golden = unpack(name, tmp_path)
    table = HudiTable.for_path(str(golden.path), SMALL)
    order = [("_hoodie_record_key", "ascending"), ("_hoodie_partition_path", "ascending")]
    before = table.scan().to_arrow().sort_by(order)
    logs = sum(map(len, table.inspect.file_slices()["log_paths"].to_pylist()))
    result = table.services.compact()
    assert result.num_log_files >= logs
    after = table.scan().to_arrow().sort_by(order)
    assert after.drop(["_hoodie_file_name"]) == before.drop(["_hoodie_file_name"])
    assert table.scan(read_optimized=True).to_arrow().sort_by(order) == after
    assert not any(table.inspect.file_slices()["log_paths"].to_pylist())
    shutil.rmtree(golden.path)


def test_options_of_files_are_checked_first(mor: MorTable):
    with pytest.raises(HudiError, match="codec"):
        mor.table.services.compact({"hoodie.parquet.compression.codec": "nope"})
    assert open_storage(mor.root).exists(".hoodie/hoodie.properties")
    assert not mor.client.active_timeline().timeline.of_actions(Action.ROLLBACK)


def test_what_the_engine_refuses_is_not_planned(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: ThreadCompactionRunner, config: TableConfig, job: CompactionJob) -> None:
        raise ConfigError(f"not {config.name} by {job.operation}")

    monkeypatch.setattr(ThreadCompactionRunner, "check", refuse)
    before = mor.table.history()
    with pytest.raises(ConfigError, match="not t by COMPACT"):
        mor.table.services.compact()
    assert mor.table.history() == before
    assert not mor.table.services.pending_compactions()


@pytest.mark.parametrize("kind", ["compact", "log_compact"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_merger_that_is_missing_is_missed_before_there_is_a_plan(tmp_path: Path, kind: str, version: int) -> None:
    strategy = First.strategy_id
    if version == 6:
        properties = {"hoodie.datasource.write.payload.class": strategy}
    else:
        properties = {"hoodie.write.record.merge.mode": "CUSTOM", "hoodie.datasource.write.payload.class": ""}
        properties["hoodie.write.record.merge.strategy.id"] = strategy
    mor = MorTable(tmp_path / "t", version, properties, {**FAST, "hoodie.log.compaction.blocks.threshold": "1"})
    services = mor.table.services
    assert not getattr(services, kind)()  # there is nothing to do, and so nothing to miss
    mor.load([row("a1", "a", 1, "x")])
    mor.delta([row("a1", "a", 2, "y")])
    before = [(i.requested, i.action, i.state) for i in mor.client.active_timeline().timeline]
    for _ in range(2):
        with pytest.raises(UnsupportedTableError, match=rf"{strategy}.*register_merger"):
            getattr(services, kind)()
    assert mor.storage is not None
    inline = {
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
        "hoodie.fail.writes.on.inline.table.service.exception": "true",
    }
    with pytest.raises(ServiceAfterCommitError, match="register_merger"):
        PostCommitServices(mor.storage, Options.parse({**mor.options, **inline})).compact(IN_THREADS)
    assert [(i.requested, i.action, i.state) for i in mor.client.active_timeline().timeline] == before
    assert len(getattr(services, kind)(dry_run=True)) == 1
    # another process may have the merger
    schedule = services.schedule_compaction if kind == "compact" else services.schedule_log_compaction
    planned = schedule().instant
    assert planned is not None
    run = services.run_compaction if kind == "compact" else services.run_log_compaction
    with pytest.raises(UnsupportedTableError, match="register_merger"):
        run()
    register_merger(First())
    try:
        assert run().instants == (planned,)
    finally:
        unregister_merger(strategy)
