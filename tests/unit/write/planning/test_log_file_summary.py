"""Contents of log files, from commit metadata."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action
from pyhudi.write.planning.log_file_summary import LogContents
from tests.tables import HandMadeTable, at

BUCKET = "00000007-63b9-435b-8b8d-18c2684745c2-0"
RANDOM = "1070a7e1-63b9-435b-8b8d-18c2684745c2-0"
ROWS = [{"id": "b", "p": "x"}, {"id": "a", "p": "x"}]


def _after_a_compaction(root: Path, version: int, log: int, done: int) -> bool:
    """Whether a log of a slice whose base file a compaction (planned at 20, completed at 40) has made may hold keys
    that are not in there; the log was written from ``log`` to ``done``."""
    table = HandMadeTable(root, version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("x", RANDOM): ROWS}, action=Action.DELTA_COMMIT)
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT", done=40)
    table.log(log, {("x", RANDOM): ROWS[:1]}, base=20, done=done)
    client = table.client()
    return LogContents.load(client.active_timeline(), FileSystemView.load(client).latest_slices()).new_keys


@pytest.mark.parametrize("version", [8, 9])
def test_log_files_from_beside_a_compaction_may_hold_keys_of_their_own(tmp_path: Path, version: int) -> None:
    assert not _after_a_compaction(tmp_path / "after", version, 50, 51)
    assert _after_a_compaction(tmp_path / "beside", version, 30, 35)
    assert _after_a_compaction(tmp_path / "longer", version, 30, 60)
    assert _after_a_compaction(tmp_path / "before", version, 15, 60)


def test_log_files_of_version_6_name_the_base_file_that_they_belong_to(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, 6, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT")
    active = table.client().active_timeline()
    (name,) = (path.name for path in (tmp_path / "x").glob("*.parquet"))

    def holds(base_file: str, operation: str = "UPSERT") -> bool:
        log = f".{RANDOM}_{at(20)}.log.1_0-0-0"
        stat = {"partitionPath": "x", "fileId": RANDOM, "path": f"x/{log}", "prevCommit": at(20)}
        stat |= {"baseFile": base_file, "logFiles": [log], "logVersion": 1}
        (tmp_path / "x" / log).write_bytes(b"")
        (tmp_path / ".hoodie" / f"{at(30)}.deltacommit").write_bytes(
            CommitMetadata(operation, write_stats([stat])).encode(6, Action.DELTA_COMMIT)
        )
        slices = FileSystemView.load(table.client()).latest_slices()
        return LogContents.load(active.reload(), slices).new_keys

    assert not holds(name)
    assert holds(name.replace(at(20), at(10)))
    assert holds("")
    assert not holds("", "LOG_COMPACT")


def _contents(table: HandMadeTable) -> LogContents:
    client = table.client()
    return LogContents.load(client.active_timeline(), FileSystemView.load(client).latest_slices())


@pytest.mark.parametrize("version", [8, 9])
def test_archived_writes_say_what_is_in_their_log_files(tmp_path: Path, version: int) -> None:
    table = HandMadeTable(tmp_path, version, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(10, {("x", RANDOM): ROWS}, action=Action.DELTA_COMMIT)
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT", done=40)
    table.log(50, {("x", RANDOM): ROWS[:1]}, base=20)
    assert _contents(table) == LogContents()
    table.log(60, {}, deletes={("x", RANDOM): ["a"]}, base=20)
    table.write(70, {("y", BUCKET): ROWS})
    assert _contents(table) == LogContents(deletes=True)
    table.archive(10, 20, 50, 60)
    assert _contents(table) == LogContents(deletes=True)
    shutil.rmtree(tmp_path / ".hoodie/timeline/history")
    assert _contents(table) == LogContents(new_keys=True, deletes=True), "what nobody knows of may hold anything"


def test_a_log_file_from_beside_an_archived_compaction(tmp_path: Path) -> None:
    table = HandMadeTable(tmp_path, properties={"hoodie.table.type": "MERGE_ON_READ"})
    table.write(20, {("x", RANDOM): ROWS}, operation="COMPACT", done=40)
    table.log(30, {("x", RANDOM): ROWS[:1]}, base=20, done=35)
    table.write(70, {("y", BUCKET): ROWS})
    assert _contents(table).new_keys
    table.archive(20, 30)
    assert _contents(table).new_keys
