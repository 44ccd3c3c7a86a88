"""Compaction of the metadata table: beside other writers, through failures and deaths."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.errors import FileSizeError, FormatError
from pyhudi.metadata.file_groups import hfile_sources
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.maintenance import metadata_compaction as compaction
from pyhudi.metadata.maintenance.compaction_attempts import ATTEMPTS_FILE, CompactionAttempts
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.metadata.metadata_layout import HEARTBEATS, load_metadata_timeline
from pyhudi.metadata.writer.initial_statistics import LOCAL
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.delta_commits import delta_commits_since_compaction
from pyhudi.timeline.heartbeat import heartbeat_path
from pyhudi.timeline.instant import Action
from pyhudi.timeline.time_generator import TimeGenerator
from pyhudi.transaction.post_commit.metadata_updates import MetadataUpdates
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row
from tests.unit.transaction.test_writer_death import deaths

OPTIONS = {**FAST, "hoodie.metadata.enable": "true", "hoodie.metadata.compact.max.delta.commits": "4"}


def table(folder: Path, version: int = 9, storage: Storage | None = None) -> MorTable:
    return MorTable(folder, version, options=OPTIONS, storage=storage)


def grow(mor: MorTable, start: int, stop: int) -> None:
    for n in range(start, stop):
        mor.delta([row("a0", "a", n, f"v{n}")])


def check(mor: MorTable, last: int) -> None:
    CACHE.clear()
    assert mor.rows()["a0"]["v"] == f"v{last}"
    found = mor.table.validate_metadata()
    assert not set(found["problem"].to_pylist()) - {"of another size"}  # which these commits do not tell


def compactions(mor: MorTable) -> list[str]:
    assert mor.storage is not None
    done = load_metadata_timeline(mor.storage, mor.version).timeline.completed()
    return [i.requested for i in done if i.action == Action.COMMIT]


def pending(mor: MorTable) -> list[str]:
    assert mor.storage is not None
    return [i.requested for i in load_metadata_timeline(mor.storage, mor.version).timeline.pending()]


@pytest.fixture(scope="module", params=[6, 9])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A table whose next commit but one makes a compaction due."""
    mor = table(tmp_path_factory.mktemp("made") / "t", request.param)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    while not compactions(mor):
        grow(mor, 1, 2)
    while deltas(mor) < 3:
        grow(mor, 1, 2)
    return mor.root, request.param


def deltas(mor: MorTable) -> int:
    assert mor.storage is not None
    since = delta_commits_since_compaction(load_metadata_timeline(mor.storage, mor.version).timeline)
    return 0 if since is None else since.count


@pytest.fixture
def mor(made: tuple[Path, int], tmp_path: Path) -> MorTable:
    return table(Path(shutil.copytree(made[0], tmp_path / "t")), made[1])


def patched_run(monkeypatch: pytest.MonkeyPatch, act: Any) -> list[MetadataCompactionJob]:
    """Do something after the files were merged and before that is published; returns the jobs seen."""
    run, seen = compaction.run_job, []

    def work(job: MetadataCompactionJob, stats_reader: Any) -> list[WriteStat]:
        stats = run(job, stats_reader)
        seen.append(job)
        if len(seen) == 1:
            act(job)
        return stats

    monkeypatch.setattr(compaction, "run_job", work)
    return seen


def test_commits_while_files_are_merged(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write without waiting for the lock; what they add is in no base file, and is read."""
    if mor.version < 8:
        pytest.skip("version 6 keeps the lock")
    before = compactions(mor)
    other = table(mor.root, mor.version)

    def meanwhile(job: MetadataCompactionJob) -> None:
        assert pending(mor) == [job.instant]
        for n in range(20, 30):  # more than make another compaction due
            grow(other, n, n + 1)
        check(other, 29)
        assert pending(mor) == [job.instant]

    seen = patched_run(monkeypatch, meanwhile)
    grow(mor, 10, 11)
    check(mor, 29)
    assert [job.instant for job in seen] == compactions(mor)[len(before) :]
    assert len(seen) == 1
    grow(mor, 30, 31)  # the ten that came meanwhile make one due
    assert len(compactions(mor)) == len(before) + 2
    check(mor, 30)


def test_a_plan_that_others_dropped(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was taken for dead publishes nothing, and leaves no files."""
    if mor.version < 8:
        pytest.skip("version 6 keeps the lock")
    before, storage = compactions(mor), mor.storage
    assert storage is not None

    def meanwhile(job: MetadataCompactionJob) -> None:
        storage.delete(heartbeat_path(job.instant, HEARTBEATS))
        grow(table(mor.root, mor.version), 20, 21)
        assert not pending(mor)

    seen = patched_run(monkeypatch, meanwhile)
    grow(mor, 10, 11)
    assert len(seen) == 1
    assert compactions(mor) == before
    assert not [p for p in storage.list(METADATA_FOLDER, recursive=True)["path"].to_pylist() if seen[0].instant in p]
    check(mor, 20)


def test_a_metadata_table_that_is_built_anew_meanwhile(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    if mor.version < 8:
        pytest.skip("version 6 keeps the lock")

    def meanwhile(_: MetadataCompactionJob) -> None:
        other = table(mor.root, mor.version)
        other.options = {**FAST, "hoodie.metadata.enable": "false"}
        grow(other, 20, 21)
        other.options = OPTIONS
        grow(other, 21, 22)

    seen = patched_run(monkeypatch, meanwhile)
    grow(mor, 10, 11)
    assert seen[0].instant not in compactions(mor)
    check(mor, 21)
    grow(mor, 22, 32)
    check(mor, 31)


def test_failures_are_tried_ever_less_often(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compactions(mor)
    at: list[int] = []

    def fail(*_: object) -> list[WriteStat]:
        at.append(deltas(mor))
        raise FileSizeError("exceeds the limit")

    with monkeypatch.context() as patch:
        patch.setattr(compaction, "run_job", fail)
        grow(mor, 10, 24)
    first = at[0]
    assert [n - first for n in at] == [0, 4, 12]
    assert compactions(mor) == before
    assert not pending(mor)
    check(mor, 23)
    grow(mor, 24, 42)
    assert len(compactions(mor)) > len(before)
    assert mor.storage is not None
    check(mor, 41)


def test_a_damaged_file_has_the_table_built_anew(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[WriteStat]:
        raise FormatError("a block is broken")

    with monkeypatch.context() as patch:
        patch.setattr(compaction, "run_job", fail)
        grow(mor, 10, 11)
    assert not mor.client.config.metadata_partitions
    grow(mor, 11, 12)
    assert mor.client.config.metadata_partitions
    check(mor, 11)


def test_dying_at_any_change(mor: MorTable) -> None:
    """Whoever comes next reads all rows, and compacts, once the heartbeat has aged."""
    mor.options = OPTIONS | {"hoodie.metadata.compact.max.delta.commits": "1000"}
    grow(mor, 10, 12)
    before = compactions(mor)
    opts = Options.parse(OPTIONS)

    def act(storage: Storage) -> None:
        client = TableMetaClient.open(storage, OPTIONS)
        generator = TimeGenerator(storage, OPTIONS, client.config.timezone)
        updates = MetadataUpdates(storage, opts, generator, LOCAL)
        with generator.reserve() as reserved:
            job = updates.plan_services(updates.locked_table(client.active_timeline(), client.config, reserved))
        updates.run_services(client.config, job)

    published = set()
    for number, storage in enumerate(deaths(mor.root, act)):
        left = table(mor.root.with_name("dead"), mor.version, storage)
        CACHE.clear()
        assert left.rows()["a0"]["v"] == "v11"
        published.add(len(compactions(left)) - len(before))
        beating = storage.list(HEARTBEATS)["path"].to_pylist()
        assert not beating or mor.version >= 8
        for path in beating:
            storage.delete(path)  # it has aged
        grow(left, 12, 13)
        assert not pending(left)
        if number % 6 == 0:
            grow(left, 13, 18)
            check(left, 17)
            assert not pending(left)
            assert len(compactions(left)) > len(before)
        names = storage.list(METADATA_FOLDER, recursive=True)["path"].to_pylist()
        assert not [path for path in names if ".pyhudi-tmp" in path]
        assert len([p for p in names if p.endswith(".hfile") and "/files/" in p]) <= 1 + len(compactions(left))
    assert published == {0, 1}


def test_large_log_files_are_read_by_ranges(mor: MorTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hfile_sources, "_WHOLE_BYTES", 0)
    before = compactions(mor)
    grow(mor, 10, 12)
    assert len(compactions(mor)) == len(before) + 1
    check(mor, 11)


def test_attempts() -> None:
    one = CompactionAttempts("x")
    assert one.next_at(10) == 10
    waits = []
    for _ in range(10):
        one = one.begin(one.next_at(10))
        waits.append(one.next_at(10) - one.deltas)
    assert waits == [10, 20, 40, 80, 160, 320, 640, 640, 640, 640]


def test_the_record_of_attempts_is_of_no_consequence(mor: MorTable) -> None:
    storage = open_storage(mor.root)
    storage.write(ATTEMPTS_FILE, b"{no json")
    left = heartbeat_path("20200101000000000", HEARTBEATS)
    storage.write(left, b"")  # of a killed process whose plan Apache Hudi has executed
    before = compactions(mor)
    grow(mor, 10, 12)
    assert len(compactions(mor)) == len(before) + 1
    assert not storage.exists(ATTEMPTS_FILE)
    assert storage.exists(left) == (mor.version < 8)
