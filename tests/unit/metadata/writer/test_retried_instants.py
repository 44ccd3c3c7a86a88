"""Metadata tables after an attempt at a plan failed and the next one, under the same instant, was committed."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import TransactionError
from pyhudi.metadata.file_groups.delta_commit_writer import (
    GroupFiles,
    GroupSlice,
    MetadataCommit,
    complete_delta_commit,
)
from pyhudi.metadata.file_groups.log_file_groups import group_slices
from pyhudi.metadata.indexes import index_delta
from pyhudi.metadata.indexes.index_declarations import declare_partitions
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.metadata_layout import load_metadata_timeline, names_by_partition
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import KEY, MetadataTable
from pyhudi.metadata.records.record_changes import RecordChanges
from pyhudi.metadata.records.record_locations import encode_locations
from pyhudi.metadata.writer.rollback import instant_deletion
from pyhudi.metadata.writer.rollback.metadata_rollback import apply_rollback
from pyhudi.metadata.writer.rollback.table_rollback import TableRollback
from pyhudi.services.clustering.clustering_runner import ThreadClusteringRunner
from pyhudi.services.clustering.clustering_runner import run_pending_clusterings as run_clustering
from pyhudi.services.compaction.compaction_runner import ThreadCompactionRunner, run_pending_compactions
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import Action, next_instant
from pyhudi.timeline.markers import IOType, Markers
from pyhudi.timeline.operation_types import LOG_COMPACT
from tests.fault_injection import Fault, FaultyStorage, Killed
from tests.file_effects import effects_below
from tests.golden.expected import unpack
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.tables import active, data_files

INDEX = "record_index"
OPTIONS = Options.parse(FAST)


def metadata(client: TableMetaClient) -> MetadataTable:
    storage = client.storage
    return MetadataTable.open(TableSnapshot(storage, TableConfig.load(storage), active(storage)))


@pytest.mark.parametrize("version", [6, 9])
def test_files_of_a_compaction_that_was_retried_are_listed(version: int, tmp_path: Path) -> None:
    mor = MorTable(tmp_path / "t", version)
    mor.load([row("a0", "a", 1, "x"), row("b0", "b", 1, "x")])
    mor.delta([row("a0", "a", 2, "y"), row("b0", "b", 2, "y")])
    plan = mor.table.services.schedule_compaction(FAST)
    # the delta commit of the metadata table is complete, the compaction is not
    dies = [Fault("writes", path=r"\.hoodie/(timeline/)?\d+(_\d+)?\.commit$", error=Killed)]
    client = TableMetaClient.open(FaultyStorage(mor.client.storage, dies), FAST)
    with pytest.raises(Killed):
        run_pending_compactions(client, OPTIONS, ThreadCompactionRunner(), instant=plan.instant)
    run_pending_compactions(mor.client, OPTIONS, ThreadCompactionRunner(), instant=plan.instant)
    mor.delta([row("a0", "a", 3, "z")])
    listed = set(list_from_metadata(metadata(mor.client), None)[0]["path"].to_pylist())
    assert listed == {path for path in data_files(mor.client.storage) if ".hoodie" not in path}
    assert {key: found["v"] for key, found in mor.rows().items()} == {"a0": "z", "b0": "y"}


LATE = RecordChanges(deletes=pa.array(["k1"]))


class _Outlived(ThreadClusteringRunner):
    """A runner that writes a log file of the record index, and another one by a task that was given up."""

    fails = False
    seen: ClassVar[list[tuple[GroupFiles, GroupSlice]]] = []

    def check(self, config: Any, job: Any) -> None:
        pass

    def index_delta(self, client: Any, tx: Any, *_: Any) -> Any:
        group = GroupSlice(MetadataTable.open_now(client.storage, tx.config).groups(INDEX)["file_id"][0].as_py())
        files = GroupFiles(client.storage, INDEX, tx.instant, tx.config.version, tx.fence)
        self.seen.append((files, group))
        files.write_log(group, LATE, token="0-9-27")
        if self.fails:
            raise RuntimeError("lost")
        # between its look at the fence and the file
        replace(files, fence=None).write_log(group, LATE, token="0-9-26")
        return IndexDelta(frozenset({INDEX}), [files.write_log(group, LATE, token="0-9-28")])


class _Fails(_Outlived):
    fails = True


def test_tasks_that_outlive_their_attempt_add_nothing_to_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index is listed once per commit."""
    listed: list[str] = []

    def recorded(storage: Storage, partitions: Collection[str]) -> dict[str, pa.Array]:
        listed.extend(partitions)
        return names_by_partition(storage, partitions)

    for module in (index_delta, instant_deletion):
        monkeypatch.setattr(module, "names_by_partition", recorded)
    root = unpack("v9_mor_meta_all", tmp_path).path
    plan = HudiTable.for_path(str(root), FAST).services.schedule_clustering()
    client = TableMetaClient.open(str(root))

    def found() -> list[str]:
        return [path.name.split("_")[-1] for path in (root / ".hoodie/metadata" / INDEX).glob(f"*{plan.instant}*")]

    for runner, left in ((_Fails(), []), (_Outlived(), ["0-9-28"])):
        listed.clear()
        with pytest.raises(RuntimeError, match="lost") if runner.fails else nullcontext():
            run_clustering(client, OPTIONS, runner, instant=plan.instant)
        assert found() == left
        assert listed.count(INDEX) == 1
        for files, group in runner.seen:
            with pytest.raises(TransactionError, match="output is discarded"):
                files.write_log(group, LATE, token="0-9-29")
        assert found() == left


def test_index_entries_of_a_failed_attempt_in_version_6(tmp_path: Path) -> None:
    """The names of log files do not tell their instant, so the rollback makes their blocks invalid, also those that a
    task writes afterwards."""
    mor = MorTable(tmp_path / "t", 6)
    mor.load([row("a0", "a", 1, "x")])
    storage = mor.client.storage
    files = GroupFiles(storage, INDEX, load_metadata_timeline(storage, 6).timeline.start or "", 6)
    files.write_base(f"{INDEX}-0000-0", RecordChanges())
    config = declare_partitions(storage, TableConfig.load(storage), [INDEX], {})
    where = pa.table({"partition": ["a"], "file_id": [FILE_IDS["a"]], "millis": [0]})

    def entry(key: str) -> RecordChanges:
        return RecordChanges(pa.array([key]), encode_locations(where, 6))

    target = "20990101000000000"
    (group,) = group_slices(storage, load_metadata_timeline(storage, 6).timeline, INDEX, 6)
    first = GroupFiles(storage, INDEX, target, 6)
    first.write_log(group, entry("lost"))
    apply_rollback(storage, config, TableRollback(target, "20990101000000001", {}, retried=True), lambda: "")
    first.write_log(group, entry("late"))
    (group,) = group_slices(storage, load_metadata_timeline(storage, 6).timeline, INDEX, 6)
    stat = first.write_log(group, entry("kept"))
    own = load_metadata_timeline(storage, 6)
    complete_delta_commit(
        own, own.to_inflight(own.create_requested("deltacommit", target)), MetadataCommit([stat]), 6, None
    )
    keys = pa.array(["kept", "late", "lost"])
    assert metadata(mor.client).lookup(INDEX, keys, [])[KEY].to_pylist() == ["kept"]


def test_a_delta_commit_goes_before_its_rollback_is_completed_in_version_6(tmp_path: Path) -> None:
    """If the process dies in between, Apache Hudi goes on with the rollback. Of a delta commit that it finds beside a
    completed one it would plan another, under the instant of that."""
    mor = MorTable(tmp_path / "t", 6)
    mor.load([row("a0", "a", 1, "x")])
    last = mor.delta([row("a0", "a", 2, "y")])
    with effects_below(mor.root) as watched:
        mor.table.services.rollback()
    own = [effect for effect in watched.seen if ".hoodie/metadata/.hoodie/" in effect]

    def steps(pattern: str) -> list[int]:
        return [step for step, effect in enumerate(own) if re.search(pattern, effect)]

    (unpublished,), gone = steps(rf"remove .*/{last}\.deltacommit$"), steps(rf"remove .*/{last}\.deltacommit\.")
    (planned,), (completed,) = steps(r"link .*006\.rollback\.requested$"), steps(r"link .*006\.rollback$")
    assert unpublished < planned < gone[0] < gone[1] < completed


def test_an_empty_log_file_of_a_dead_write_in_version_6_is_not_listed(tmp_path: Path) -> None:
    """It died before its first block. Apache Hudi cannot read a metadata table that lists a file of 0 bytes."""
    mor = MorTable(tmp_path / "t", 6)
    mor.load([row("a0", "a", 1, "x")])
    storage, now = mor.client.storage, active(mor.client.storage)
    (loaded,) = now.timeline.instants
    dead = now.to_inflight(now.create_requested(Action.DELTA_COMMIT, next_instant(loaded.requested)))
    name = f".{FILE_IDS['a']}_{loaded.requested}.log.1_0-1-2"
    Markers(storage, dead.requested).create("a", name, IOType.APPEND)
    storage.write(f"a/{name}", b"")
    mor.table.services.rollback(dead.requested)
    files = list_from_metadata(metadata(mor.client), None)[0]
    (command,) = files.filter(pc.equal(files["kind"], "log")).to_pylist()
    assert (command["log_version"], command["size"] > 0) == (2, True)
    assert name not in str(mor.table.validate_metadata().to_pylist())
    assert {key: found["v"] for key, found in mor.rows().items()} == {"a0": "x"}


@pytest.mark.parametrize("completed", [False, True], ids=["pending", "completed"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_write_whose_logs_were_compacted_is_not_rolled_back_in_the_metadata_table(
    version: int, completed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only Apache Hudi compacts logs of the metadata table. The compacted ones include the write, so it is rebuilt."""
    mor = MorTable(tmp_path / "t", version)
    mor.load([row("a0", "a", 1, "x")])
    last = mor.delta([row("a0", "a", 2, "y")])
    own = load_metadata_timeline(mor.client.storage, version)
    begun = own.create_requested(Action.LOG_COMPACTION, f"{last}005" if version < 8 else next_instant(last))
    if completed:
        done = CommitMetadata(LOG_COMPACT).encode(version, Action.DELTA_COMMIT)
        own.complete(own.to_inflight(begun), done, next_instant(begun.requested) if version >= 8 else None)
    mor.table.services.rollback()
    assert "deleting the metadata table" in caplog.text
    assert "files" in mor.client.config.metadata_partitions
    assert {key: found["v"] for key, found in mor.rows().items()} == {"a0": "x"}
    assert not mor.table.validate_metadata().num_rows or version < 8
