"""The metadata table as a reader sees it: the golden ones whole, then broken in all ways."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import MetadataTableError, MetadataTableWarning
from pyhudi.metadata.file_groups.hfile_sources import CACHE, MetadataSlice
from pyhudi.metadata.metadata_layout import load_metadata_timeline
from pyhudi.metadata.reader.file_completeness_check import written_by
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.reader.metadata_validation import metadata_differences
from pyhudi.storage import open_storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.markers import IOType, Markers
from tests.archival import archive_instants
from tests.fault_injection import FaultyStorage
from tests.golden.expected import unpack
from tests.rows import encode_table
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

GOLDEN = ("v6_mor_rollback", "v8_mor_bucket", "v9_cow_complex_keys", "v9_mor_meta_all")
OFF = {"hoodie.metadata.enable": "false"}


def pinned(path: Path) -> TableSnapshot:
    return TableSnapshot.load(TableMetaClient.open(str(path)))


def opened(path: Path) -> MetadataTable:
    table = pinned(path)
    return MetadataTable.open(table)


@pytest.fixture(params=GOLDEN)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    CACHE.clear()
    return unpack(request.param, tmp_path).path


def test_a_validation_reads_each_file_once_and_one_file_group_at_a_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_a_time: list[int] = []
    scan_groups = MetadataTable.scan_groups

    def counted(table: MetadataTable, groups: list[MetadataSlice], *more: Any) -> pa.Table:
        at_a_time.append(len(groups))
        return scan_groups(table, groups, *more)

    monkeypatch.setattr(MetadataTable, "scan_groups", counted)
    storage = FaultyStorage(open_storage(str(path)))
    assert not metadata_differences(TableSnapshot.load(TableMetaClient.open(storage))).num_rows
    assert set(at_a_time) == {1}
    read = Counter(file for name, file in storage.operations if name == "read_range")
    assert any(file.endswith(".hfile") for file in read)
    assert max(read.values()) == 1, read


def test_both_listings_show_the_same(path: Path):
    table = pinned(path)
    metadata = opened(path)
    listed = FileSystemView.load(table)
    known = FileSystemView.load(table, lister=lambda _, partitions: list_from_metadata(metadata, partitions))
    assert known.partitions == listed.partitions
    # what rollbacks of version 6 say of the sizes of log files is no measure
    names = [name for name in listed.all_slices().column_names if name != "log_sizes" or table.config.version >= 8]
    assert known.all_slices().select(names).equals(listed.all_slices().select(names))
    for partition in listed.partitions:
        some, _ = list_from_metadata(metadata, [partition])
        assert set(some["path"].to_pylist()) == set(
            known.files.filter(pc.equal(known.files["partition"], partition))["path"].to_pylist()
        )
    assert list_from_metadata(metadata, ["not there"])[0].num_rows == 0


def test_lookups_find_what_scans_find(path: Path):
    metadata = opened(path)
    for partition in metadata.partitions:
        every = metadata.scan(partition).sort_by("key")
        keys = every["key"].combine_chunks()
        assert len(pc.unique(keys)) == len(keys) > 0
        found = metadata.lookup(partition, pa.concat_arrays([keys, pa.array(["not there", "", None])])).sort_by("key")
        assert found.equals(every)
        some = metadata.prefixes(partition, sorted({key[:5] for key in keys.to_pylist()[::2]}))
        expected = {k for k in keys.to_pylist() if k[:5] in {key[:5] for key in keys.to_pylist()[::2]}}
        assert set(some["key"].to_pylist()) == expected
    with pytest.raises(MetadataTableError, match="has no"):
        metadata.groups("nothing")


def rows(path: Path, options: dict[str, str] | None = None) -> list:
    table = HudiTable.for_path(str(path), options).scan().to_arrow()
    return encode_table(table, [name for name in table.column_names if name != "_hoodie_file_name"])


BREAKS = {
    "folder gone": lambda m: shutil.rmtree(m),
    "properties gone": lambda m: (m / ".hoodie/hoodie.properties").unlink(),
    "another table's": lambda m: (change(m / ".hoodie/hoodie.properties", b"_metadata", b"x_metadata"), move(m)),
    "another version": lambda m: change(m / ".hoodie/hoodie.properties", b"table.version=", b"table.version=1"),
    "partition gone": lambda m: shutil.rmtree(m / "files"),
    "base file gone": lambda m: next((m / "files").glob("*.hfile")).unlink(),
    "base file cut": lambda m: cut(next((m / "files").glob("*.hfile"))),
    "base file of zeros": lambda m: zeros(next((m / "files").glob("*.hfile"))),
    "log file gone": lambda m: newest_log(m).unlink(),
    "log file cut": lambda m: newest_log(m).write_bytes(newest_log(m).read_bytes()[:-20]),
    "log file damaged": lambda m: newest_log(m).write_bytes(b"#HUDI!" + newest_log(m).read_bytes()[6:]),
    "delta commit gone": lambda m: newest(m).unlink(),
    "timeline gone": lambda m: [p.unlink() for p in sorted((m / ".hoodie").rglob("*commit*"))],
}


def change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def move(metadata: Path) -> None:
    """Give the newest write another time, as those of another table have."""
    file = newest(metadata)
    file.rename(file.with_name("2099" + file.name[4:]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5000])


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def newest_log(metadata: Path) -> Path:
    return max((metadata / "files").glob(".files*.log.*"), key=lambda p: p.name)


def newest(metadata: Path) -> Path:
    done = [p for p in (metadata / ".hoodie").rglob("*.deltacommit") if "history" not in p.parts]
    return max(done, key=lambda p: p.name)


def test_that_of_a_renamed_table_is_trusted(path: Path):
    """Apache Hudi renames the table alone; so does a statement that dies."""
    expected = rows(path, OFF)
    TableMetaClient.open(path).config.updated(TableMetaClient.open(path).storage, set={"hoodie.table.name": "renamed"})
    CACHE.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(path) == expected
    assert "listing of the storage" not in HudiTable.for_path(str(path)).scan().plan().explain()


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_one_is_not_trusted(how: str, path: Path):
    expected = rows(path, OFF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(path) == expected
    BREAKS[how](path / ".hoodie" / "metadata")
    CACHE.clear()
    with pytest.warns(MetadataTableWarning, match="is not used") as caught:
        assert rows(path) == expected
    assert len(caught) == 1
    with warnings.catch_warnings():
        # once is enough
        warnings.simplefilter("error")
        assert rows(path) == expected
    plan = HudiTable.for_path(str(path)).scan().plan()
    assert "listing of the storage (the metadata table cannot be used" in plan.explain()


def test_errors_of_an_index_say_how_to_mend_it(tmp_path: Path):
    path = unpack("v9_mor_meta_all", tmp_path).path
    CACHE.clear()
    zeros(next((path / ".hoodie" / "metadata" / "column_stats").glob("*.hfile")))
    with pytest.raises(MetadataTableError, match=r"column_stats: .*; drop the index and build it again"):
        opened(path).scan("column_stats")


def test_a_file_of_the_name_and_size_of_another_is_read(tmp_path: Path):
    """As when Apache Hudi builds a partition anew, whose first file has the instant and the token of the former."""
    path = unpack("v9_mor_meta_all", tmp_path).path
    partition = path / ".hoodie" / "metadata" / "column_stats"
    base = next(partition.glob("*.hfile"))
    data, before = base.read_bytes(), opened(path).scan("column_stats").sort_by("key")
    zeros(base)
    with pytest.raises(MetadataTableError, match="column_stats"):
        opened(path).scan("column_stats")
    base.write_bytes(data)
    assert opened(path).scan("column_stats").sort_by("key").equals(before)


def test_a_partition_is_built_again_after_a_clean(tmp_path: Path):
    """In version 6 the new build has an instant of the last write. The clean and the compaction of the metadata table
    after it are later, and so are the files that they have added to the former build."""
    often = {"hoodie.metadata.compact.max.delta.commits": "1", "hoodie.clean.commits.retained": "1"}
    mor = MorTable(tmp_path / "t", 6, options={**FAST, "hoodie.metadata.enable": "true", **often})
    mor.load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    services = mor.table.services
    services.build_index("bloom_filters")
    for n in range(3):
        mor.delta([row("a0", "a", n, f"y{n}"), row("b0", "b", n, f"y{n}")])
        services.compact()
    for partitions, compacts in (("a", "1"), ("b", "9")):
        clean = {**often, "hoodie.metadata.compact.max.delta.commits": compacts}
        assert services.clean({**clean, "hoodie.clean.partition.filter.regex": partitions})
    services.drop_index("bloom_filters")
    services.build_index("bloom_filters")
    assert mor.table.validate_metadata().num_rows == 0
    mor.delta([row("a0", "a", 4, "y4"), row("b0", "b", 4, "y4")])
    services.compact()
    assert mor.table.validate_metadata().num_rows == 0
    for partition in ("files", "bloom_filters"):
        files = (mor.root / ".hoodie/metadata" / partition).glob("*.hfile")
        newest = max(files, key=lambda path: path.name.rpartition("_")[2])
        newest.rename(newest.with_suffix(".lost"))
        assert "is missing" in mor.table.validate_metadata()["problem"][0].as_py()
        newest.with_suffix(".lost").rename(newest)


def test_a_build_that_was_archived_before_writes_to_a_former_partition(tmp_path: Path) -> None:
    """As when Apache Hudi builds a partition anew, whose instant it then archives first, as it has the smallest
    number."""
    on = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    rare = {"hoodie.metadata.compact.max.delta.commits": "20"}
    MorTable(tmp_path / "t", 9, options={**FAST, **OFF}).load([row(f"{p}0", p, 0, "x") for p in FILE_IDS])
    mor = MorTable(tmp_path / "t", 9, options={**FAST, **on, **rare})
    mor.table.services.create_metadata_table()
    for n in range(3):
        mor.delta([row("a0", "a", n, f"y{n}")])
    assert mor.storage is not None
    folder = mor.root / ".hoodie/metadata/column_stats"

    def problems() -> set[str]:
        return set(mor.table.validate_metadata()["problem"].to_pylist())

    active = load_metadata_timeline(mor.storage, 9)
    build = active.timeline.find(next(folder.glob(".*_0000*")).name.split("_")[1].split(".")[0])
    former, later = [i for i in active.timeline.completed() if not i.requested.startswith("0000")][:2]
    assert build is not None
    assert former.completion is not None
    completed = mor.root / active.path(build)
    completed.rename(completed.with_name(f"{build.requested}_{int(former.completion) + 1}.deltacommit"))
    for file in folder.glob(f".*_{former.requested}.log*"):
        file.unlink()
    assert problems() == {"of another size"}  # which these commits do not tell
    active = load_metadata_timeline(mor.storage, 9)
    archive_instants(active, [i for i in active.timeline if i.requested <= build.requested])
    assert problems() == {"of another size"}
    for file in folder.glob(f".*_{later.requested}.log*"):
        file.unlink()
    assert any("is missing" in problem for problem in problems())


def test_a_delta_commit_of_version_6_that_was_written_again(tmp_path: Path) -> None:
    """As another attempt at a plan does, whose files have other names."""
    mor = MorTable(tmp_path / "t", 6, options={**FAST, "hoodie.metadata.enable": "true"})
    mor.load([row("a0", "a", 0, "x")])
    mor.delta([row("a0", "a", 1, "y")])
    assert mor.storage is not None
    for expected in (1, 0):
        active = load_metadata_timeline(mor.storage, 6)
        last = active.timeline.completed().last
        assert last is not None
        assert written_by(active, last).num_rows == expected
        (mor.root / active.path(last)).write_bytes(CommitMetadata("UPSERT").encode(6, "deltacommit"))


@pytest.mark.parametrize("has_logs", [False, True])
def test_rollbacks_of_version_6_that_are_not_recorded(has_logs: bool, tmp_path: Path) -> None:
    """1.2.0 records only those that leave log files."""
    mor = MorTable(tmp_path / "t", 6)
    mor.load([row("a0", "a", 1, "x")])
    tx = mor.begin()
    if has_logs:
        mor.write_logs(tx, [row("a0", "a", 2, "lost")])
    mor.table.services.rollback(tx.instant)
    (rollback,) = mor.client.active_timeline().timeline.of_actions("rollback")
    metadata = load_metadata_timeline(mor.client.storage, 6)
    recorded = metadata.timeline.find(rollback.requested, "deltacommit")
    assert recorded is not None
    metadata.delete_states(metadata.states(recorded))
    found = [problem for problem in mor.table.validate_metadata()["problem"].to_pylist() if "cannot be used" in problem]
    assert len(found) == has_logs
    assert mor.rows()["a0"]["v"] == "x"


def test_log_files_of_pending_writes_of_version_6_are_no_difference(tmp_path: Path) -> None:
    """Their names contain the instant of the base file."""
    mor = MorTable(tmp_path / "t", 6, options={**FAST, "hoodie.metadata.enable": "true"})
    mor.load([row("a0", "a", 0, "x")])
    mor.delta([row("a0", "a", 1, "y")])
    log = next((mor.root / "a").glob(".*.log.*"))
    other = log.with_name(log.name.replace(".log.1_", ".log.2_"))
    shutil.copy(log, other)
    assert mor.table.validate_metadata()["path"].to_pylist() == [f"a/{other.name}"]
    pending = "20990101000000000"
    for state in ("requested", "inflight"):
        (mor.root / f".hoodie/{pending}.deltacommit.{state}").touch()
    Markers(pinned(mor.root).storage, pending).create("a", other.name, IOType.APPEND)
    assert mor.table.validate_metadata().num_rows == 0


def test_it_is_used_unless_told_otherwise(path: Path):
    assert HudiTable.for_path(str(path)).scan().plan().files_from == "the metadata table"
    plan = HudiTable.for_path(str(path), OFF).scan().plan()
    assert plan.files_from == "a listing of the storage (hoodie.metadata.enable is false)"


def test_a_delta_commit_of_an_unfinished_write_is_not_seen(path: Path):
    """Take the completed state from the table's newest write: files of the metadata table are not seen, either."""
    table = pinned(path)
    last = table.active.timeline.writes().completed().last
    assert last is not None
    before = opened(path)
    keys = {partition: before.scan(partition)["key"].to_pylist() for partition in before.partitions}
    table.active.delete(last)
    after = opened(path)
    new = [p for p in after.groups("files")["log_paths"].to_pylist()[0] if last.requested in p]
    assert not new
    assert rows(path) == rows(path, OFF)
    assert sum(map(len, keys.values())) >= sum(after.scan(p).num_rows for p in after.partitions)


def test_validation(path: Path):
    table = HudiTable.for_path(str(path))
    assert table.validate_metadata().num_rows == 0
    data = next(p for p in path.rglob("*.parquet") if ".hoodie" not in p.parts)
    renamed = data.with_name("x" + data.name)
    data.rename(renamed)
    found = table.validate_metadata()
    assert {row["problem"] for row in found.to_pylist()} == {"not in the metadata table", "not in the storage"}
    renamed.rename(data)
    shutil.rmtree(path / ".hoodie/metadata/files")
    assert "cannot be used" in table.validate_metadata()["problem"][0].as_py()


def test_every_byte_of_an_hfile():
    """Of files with checksums, a changed byte never makes other entries."""
    from pyhudi.errors import FormatError
    from pyhudi.format.hfile.hfile_reader import HFileReader
    from pyhudi.format.hfile.hfile_writer import write_hfile
    from pyhudi.format.hfile.key_values import ENTRY_SCHEMA

    keys = pa.array([f"k{i}" for i in range(5)])
    data = write_hfile(keys, pa.array([b"v" * i for i in range(5)]), schema="{}")
    whole = pa.Table.from_batches(HFileReader(data).batches(), ENTRY_SCHEMA)
    # the rest of the trailer is empty
    for at in [*range(len(data) - 4096 + 200), *range(len(data) - 8, len(data))]:
        for change in (0x01, 0x80, 0xFF):
            broken = bytearray(data)
            broken[at] ^= change
            try:
                reader = HFileReader(bytes(broken))
                found = pa.Table.from_batches(reader.batches(), ENTRY_SCHEMA)
                reader.lookup(keys)
                reader.prefix(b"k")
            except FormatError:
                continue
            assert found.equals(whole), (at, change)


def test_lookups_by_key(tmp_path: Path):
    golden = unpack("v9_mor_meta_all", tmp_path)
    table = HudiTable.for_path(str(golden.path))
    every = table.scan().to_arrow()
    some = every["_hoodie_record_key"].to_pylist()[:3]
    found = table.lookup([*some, "not there"])
    assert sorted(found["_hoodie_record_key"].to_pylist()) == sorted(some)
    assert table.lookup([]).num_rows == 0
    assert table.lookup(some[:1], ["id"]).column_names == ["id"]


@pytest.mark.parametrize("key", ["hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight"])
def test_indexes_that_nobody_knows_or_that_are_being_built(key: str, path: Path):
    """They are nobody's business: what is not known is not used, and what is not complete neither."""
    expected = rows(path, OFF)
    table = pinned(path)
    declared = ",".join(filter(None, [table.config.properties.get(key), "unheard_of_index"]))
    table.config.updated(table.storage, set={key: declared})
    (path / ".hoodie/metadata/unheard_of_index").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(path) == expected
    assert HudiTable.for_path(str(path)).scan().plan().files_from == "the metadata table"
