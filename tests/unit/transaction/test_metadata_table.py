"""The metadata table always says what the commits say, whoever died wherever."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.metadata.fold import fold_versions
from pyhudi.metadata.home import metadata_timeline
from pyhudi.metadata.keys import ALL_PARTITIONS
from pyhudi.metadata.records import FILES, decode, record_schema
from pyhudi.metadata.slices import current_slices, read_slice
from pyhudi.metadata.visible import Visible
from pyhudi.storage import Storage
from pyhudi.table.config import TableConfig
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.timeline.instants import Action
from tests.unit.transaction.tables import (
    MULTI_WRITER,
    OPTIONS,
    WITH_METADATA,
    Write,
    active,
    check_clean,
    data_files,
    make_table,
)
from tests.unit.transaction.test_kill import deaths, opened

PARTITIONED = {"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "id"}


def write(partitions: tuple[str, ...] = ("a", "b"), **more: object) -> Write:
    return Write(partitions, options=WITH_METADATA, **more)  # type: ignore[arg-type]


def listed(storage: Storage, metadata: str = "files") -> set[str] | None:
    """Paths that the metadata table has; None without one."""
    config = TableConfig.load(storage)
    if metadata not in config.metadata_partitions:
        return None
    own, now = metadata_timeline(storage, config.version).timeline, active(storage).timeline
    visible = Visible.of(own, now)
    found = set()
    for one in current_slices(storage, metadata, visible, config.version):
        records = fold_versions(metadata, read_slice(storage, one, visible), config.version)
        payloads = decode(records.values, record_schema(config.version))[FILES].to_pylist()
        for key, entries in zip(records.keys.to_pylist(), payloads, strict=True):
            if key != ALL_PARTITIONS:
                found |= {f"{key}/{name}" for name, entry in entries if not entry["isDeleted"]}
    return found


def named(storage: Storage) -> set[str]:
    """Paths that completed commits name."""
    now = active(storage)
    stats = [now.commit_metadata(i).stats["path"].to_pylist() for i in now.timeline.completed().writes()]
    return {path for paths in stats for path in paths}


def check(storage: Storage) -> None:
    """What is left says nothing wrong: all that commits name, and nothing of a write that is none."""
    known = listed(storage)
    assert known is None or known == named(storage)


def mark(storage: Storage) -> None:
    """Make partitions of the folders, as write tasks do; listings go by that."""
    for partition in ("a", "b", "c"):
        write_partition_metadata(storage, partition, "20240101000000000")


def not_twice(version: int) -> None:
    if version == 8:
        pytest.skip("the files of versions 8 and 9 are the same ones")


@pytest.fixture
def folder(tmp_path: Path, version: int) -> Path:
    folder = tmp_path / "table"
    make_table(opened(folder), version, PARTITIONED)
    return folder


def test_many_commits(folder: Path, version: int) -> None:
    storage = opened(folder)
    for n in range(34):
        write().run(storage)
        if n % 7 == 3:
            write().leave(storage)
        if n % 7 == 5:
            with write().begin(storage) as tx:
                write().write_files(tx)
        check(storage)
    done = metadata_timeline(storage, version).timeline.completed()
    assert len(done.of_actions(Action.COMMIT)) >= 3, "it is compacted"
    assert done.of_actions(Action.CLEAN), "it is cleaned"
    assert not metadata_timeline(storage, version).timeline.pending()


def test_dying_in_the_first_write(folder: Path, version: int) -> None:
    not_twice(version)
    for storage in deaths(folder, write().run):
        check(storage)
        write().run(storage)
        assert listed(storage) == named(storage) == data_files(storage)
        check_clean(storage)


def test_dying_in_a_write_that_compacts(folder: Path, version: int) -> None:
    not_twice(version)
    storage = opened(folder)
    while len(metadata_timeline(storage, TableConfig.load(storage).version).timeline) < 9:
        write().run(storage)
    write().leave(storage)
    for storage in deaths(folder, write().run):
        check(storage)
        write(("c",)).run(storage)
        assert listed(storage) == named(storage)
        check_clean(storage)


def test_dying_beside_others(folder: Path, version: int) -> None:
    """A dead writer is left alone until its heartbeat has aged: what it has told the metadata table is not seen."""
    not_twice(version)
    options = {**MULTI_WRITER, "hoodie.metadata.enable": "true"}
    Write(options=options).run(opened(folder))
    for storage in deaths(folder, Write(options=options).run):
        for _ in range(3):
            Write(options=options).run(storage)
            check(storage)
            assert listed(storage) is not None


def test_options_take_it_away_and_bring_it_back(folder: Path) -> None:
    storage = opened(folder)
    mark(storage)
    write().run(storage)
    Write(options=OPTIONS).run(storage)
    assert listed(storage) is None
    assert not storage.list(".hoodie/metadata", recursive=True).num_rows
    write().run(storage)
    assert listed(storage) == named(storage)


def test_one_that_does_not_know_all_is_built_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = opened(folder)
    mark(storage)
    write().run(storage)
    partitions = TableConfig.load(storage).properties["hoodie.table.metadata.partitions"]
    kept = {path: storage.read(path) for path in storage.list(".hoodie/metadata", recursive=True)["path"].to_pylist()}
    Write(options=OPTIONS).run(storage)
    for path, data in kept.items():
        storage.write(path, data)
    TableConfig.load(storage).updated(storage, set={"hoodie.table.metadata.partitions": partitions})
    assert listed(storage) != named(storage)
    write().run(storage)
    assert listed(storage) == named(storage)
    assert "does not know of 1 completed writes" in caplog.text
    storage.delete_tree(".hoodie/metadata/files")
    write().run(storage)
    assert listed(storage) == named(storage)


def test_partitions_that_nobody_maintains_go(folder: Path, version: int) -> None:
    storage = opened(folder)
    write().run(storage)
    config = TableConfig.load(storage)
    declared = {*config.metadata_partitions, "record_index", "secondary_index_x"}
    config.updated(storage, set={"hoodie.table.metadata.partitions": ",".join(sorted(declared))})
    storage.write(".hoodie/metadata/record_index/.record-index-0000-0_0.log.1_0-0-0", b"x")
    write().run(storage)
    usual = ("column_stats", "files", "partition_stats") if version >= 8 else ("files",)
    assert TableConfig.load(storage).metadata_partitions == usual
    assert listed(storage) == named(storage)
    assert not storage.list(".hoodie/metadata/record_index").num_rows
