"""The metadata table always says what the commits say, whoever died wherever."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from pyhudi.errors import CorruptTableError, MetadataTableAheadError, MetadataTableError
from pyhudi.metadata.file_groups.hfile_sources import CACHE
from pyhudi.metadata.metadata_layout import FILES, load_metadata_timeline
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.reader.metadata_timeline import open_timeline
from pyhudi.read.selection.table_files import TableFiles
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.commit_metadata import CommitMetadata, write_stats
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline_layout import Layout
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
from tests.unit.transaction.test_writer_death import deaths, opened

PARTITIONED = {"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "id"}


def write(partitions: tuple[str, ...] = ("a", "b"), **more: object) -> Write:
    return Write(partitions, options=WITH_METADATA, **more)  # type: ignore[arg-type]


def listed(storage: Storage) -> set[str] | None:
    """Paths that readers find in the metadata table; None without one."""
    config = TableConfig.load(storage)
    if FILES not in config.metadata_partitions:
        return None
    CACHE.clear()  # another copy of the table has been at this place
    metadata = MetadataTable.open(TableSnapshot(storage, config, active(storage)))
    return set(list_from_metadata(metadata)[0]["path"].to_pylist())


def named(storage: Storage) -> set[str]:
    """Paths that completed commits name."""
    now = active(storage)
    stats = [now.commit_metadata(i).stats["path"].to_pylist() for i in now.timeline.completed().writes()]
    return {path for paths in stats for path in paths}


def check(storage: Storage) -> None:
    """What is left says nothing wrong: all that commits name, and nothing of a write that is none; or readers do not
    trust it, as after rollbacks of version 6 that no metadata table was there for."""
    try:
        known = listed(storage)
    except MetadataTableError:
        return
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
    not_twice(version)
    storage = opened(folder)
    for n in range(34):
        write().run(storage)
        if n % 7 == 3:
            write().leave(storage)
        if n % 7 == 5:
            with write().begin(storage) as tx:
                write().write_files(tx)
        check(storage)
    done = load_metadata_timeline(storage, version).timeline.completed()
    assert len(done.of_actions(Action.COMMIT)) >= 3, "it is compacted"
    assert done.of_actions(Action.CLEAN), "it is cleaned"
    assert not load_metadata_timeline(storage, version).timeline.pending()


def test_dying_in_the_first_write(folder: Path, version: int) -> None:
    not_twice(version)
    for storage in deaths(folder, write().run):
        check(storage)
        write().run(storage)
        check(storage)
        assert version < 8 or listed(storage) == named(storage)
        assert named(storage) == data_files(storage)
        check_clean(storage)


def test_dying_in_a_write_that_compacts(folder: Path, version: int) -> None:
    not_twice(version)
    storage = opened(folder)
    while len(load_metadata_timeline(storage, TableConfig.load(storage).version).timeline) < 9:
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
    with pytest.raises(MetadataTableError, match="lacks"):
        listed(storage)
    write().run(storage)
    assert listed(storage) == named(storage)
    assert "lacks 1 completed writes" in caplog.text
    storage.delete_tree(".hoodie/metadata/files")
    write().run(storage)
    assert listed(storage) == named(storage)


def test_another_partition_built_later_does_not_make_it_know_all(folder: Path, version: int) -> None:
    """Apache Hudi builds what it wants to have beside a list of files that others have left behind."""
    storage = opened(folder)
    mark(storage)
    write().run(storage)
    properties = TableConfig.load(storage).properties["hoodie.table.metadata.partitions"]
    own = load_metadata_timeline(storage, version)
    kept = {path: storage.read(path) for path in storage.list(".hoodie/metadata", recursive=True)["path"].to_pylist()}
    Write(options=OPTIONS).run(storage)
    for path, data in kept.items():
        storage.write(path, data)
    TableConfig.load(storage).updated(storage, set={"hoodie.table.metadata.partitions": properties})
    later = f"{active(storage).timeline.instants[-1].requested}010" if version < 8 else "00000000000000009"
    entry = own.create_requested(Action.DELTA_COMMIT, later)
    path = f"bloom_filters/bloom-filters-0000-0_0-0-0_{later}.hfile"
    stats = [{"partitionPath": "bloom_filters", "fileId": "bloom-filters-0000-0", "path": path, "fileSizeInBytes": 1}]
    content = CommitMetadata("BULK_INSERT_PREPPED", write_stats(stats)).encode(version, Action.DELTA_COMMIT)
    own.complete(own.to_inflight(entry), content, "20991231000000000" if version >= 8 else None)
    with pytest.raises(MetadataTableError, match="lacks 1 completed writes"):
        open_timeline(TableSnapshot(storage, TableConfig.load(storage), active(storage)))


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


def test_one_that_is_broken_is_found_by_its_compaction(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Merging what is left would make the loss one that nobody can see."""
    storage = opened(folder)
    mark(storage)
    for _ in range(3):
        write().run(storage)
    paths = storage.list(".hoodie/metadata/files")["path"].to_pylist()
    storage.delete(max(path for path in paths if ".log." in path))
    for _ in range(12):
        write().run(storage)
        if not TableConfig.load(storage).metadata_partitions:
            break
    assert listed(storage) is None
    assert "is corrupt and will be disabled" in caplog.text
    write().run(storage)
    assert listed(storage) == named(storage)


DEFINITIONS = ".hoodie/.index_defs/index.json"


def test_definitions_that_are_gone_or_of_no_known_kind(folder: Path, version: int) -> None:
    if version < 8:
        pytest.skip("tables of version 6 have no definitions")
    storage = opened(folder)
    mark(storage)
    write().run(storage)
    known = json.loads(storage.read(DEFINITIONS))
    storage.delete(DEFINITIONS)
    assert listed(storage) == named(storage)
    write().run(storage)
    assert json.loads(storage.read(DEFINITIONS)) == known
    known["indexDefinitions"]["vector_index_x"] = {"indexName": "vector_index_x", "indexType": "vector_index"}
    storage.write(DEFINITIONS, json.dumps(known).encode())
    write().run(storage)
    assert listed(storage) == named(storage)
    assert json.loads(storage.read(DEFINITIONS)) == known, "whoever knows what it is may still want to build it"


def test_definitions_that_are_damaged(folder: Path, version: int) -> None:
    if version < 8:
        pytest.skip("tables of version 6 have no definitions")
    storage = opened(folder)
    mark(storage)
    write().run(storage)
    whole = storage.read(DEFINITIONS)
    for damaged in (b"{", whole[:-4], b'{"indexDefinitions": [1]}', b"\xff"):
        storage.write(DEFINITIONS, damaged)
        with pytest.raises(CorruptTableError, match="not a valid file of index definitions"):
            write().run(storage)
        check(storage)
    storage.write(DEFINITIONS, whole)
    write().run(storage)
    assert listed(storage) == named(storage)


def test_a_partition_that_is_half_built(folder: Path, version: int) -> None:
    """What an index builder has left that died: nobody reads it, and the next write takes it away."""
    not_twice(version)
    storage = opened(folder)
    mark(storage)
    write().run(storage)
    TableConfig.load(storage).updated(storage, set={"hoodie.table.metadata.partitions.inflight": "record_index"})
    storage.write(".hoodie/metadata/record_index/record-index-0000-0_0-0-0_00000000000000009.hfile", b"half of it")
    assert listed(storage) == named(storage)
    for _ in range(12):
        write().run(storage)
        check(storage)
    assert listed(storage) == named(storage)
    assert not TableConfig.load(storage).metadata_partitions_inflight
    assert not storage.list(".hoodie/metadata/record_index").num_rows


def test_a_reader_whose_timeline_is_older_than_a_compaction(
    folder: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen a write pending that the metadata table has been compacted with since: it looks again."""
    storage = opened(folder)
    tx = write().begin(storage)
    metadata = write().write_files(tx)
    stale = TableSnapshot(storage, TableConfig.load(storage), active(storage))
    assert tx.instant in {i.requested for i in stale.active.timeline.pending()}
    tx.commit(metadata)
    CACHE.clear()
    config = TableConfig.load(storage)
    stale = replace(stale, config=config)
    known = list_from_metadata(MetadataTable.open(stale))[0]
    assert not known.num_rows, "what is pending is not seen"
    while not load_metadata_timeline(storage, version).timeline.completed().of_actions(Action.COMMIT):
        write().run(storage)
    with pytest.raises(MetadataTableAheadError, match="read again"):
        MetadataTable.open(stale)
    looks = [stale.active, stale.active]
    load = ActiveTimeline.load

    def behind_at_first(storage: Storage, layout: Layout) -> ActiveTimeline:
        return looks.pop() if looks and not layout.folder.startswith(".hoodie/metadata") else load(storage, layout)

    monkeypatch.setattr(ActiveTimeline, "load", behind_at_first)
    assert MetadataTable.open_now(storage, config)
    assert not looks
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        files = TableFiles(stale)
    assert files.source == "the metadata table"
    assert files.table.active.timeline.completed().find(tx.instant)
    CACHE.clear()
    assert set(files.list(storage, None)[0]["path"].to_pylist()) == named(storage)
