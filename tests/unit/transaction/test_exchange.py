"""A new table in the place of an old one: whole at every point of death, and never mixed with others' writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import MappingProxyType

import pytest

from pyhudi.config import Options
from pyhudi.errors import UnsupportedTableError
from pyhudi.index.bucketcounts import BucketCounts, load_counts, store_counts
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.faults import WRITES, Fault, FaultyStorage, Killed
from pyhudi.table.config import TableConfig
from pyhudi.table.fsview import FileSystemView
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.table.properties import table_checksum
from pyhudi.transaction.exchange import exchange_table
from pyhudi.transaction.outcome import Committed, Conflicted
from tests.unit.transaction.tables import MULTI_WRITER, OPTIONS, Write, active, data_files, make_table

KINDS = [(9, 9), (8, 9), (6, 6), (6, 9), (9, 6)]


def opened(folder: Path) -> Storage:
    return open_storage(folder, {"pyhudi.storage.fsync": "none"})


def config(version: int, **more: str) -> TableConfig:
    properties = {
        "hoodie.table.name": "new",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": "2" if version >= 8 else "1",
        "hoodie.table.timeline.timezone": "UTC",
        "hoodie.table.recordkey.fields": "id",
        **more,
    }
    return TableConfig(MappingProxyType({**properties, "hoodie.table.checksum": table_checksum(properties)}))


def old_table(folder: Path, version: int) -> Storage:
    """Two writes, of which the second replaces a file group of the first."""
    storage = opened(folder)
    make_table(storage, version, {"hoodie.table.partition.fields": "p"})
    for partition in ("a", "b"):
        write_partition_metadata(storage, partition, "20240101000000000")
    Write(file_ids={"a": "A", "b": "B"}).run(storage)
    Write(("b",), "replacecommit", "INSERT_OVERWRITE", file_ids={"b": "C"}, replaced=(("b", "B"),)).run(storage)
    storage.write(".hoodie/archived/.commits_.archive.1_1-0-1", b"x")
    if version >= 8:
        storage.write(".hoodie/timeline/history/_version_", b"0")
    return storage


def overwrite(
    storage: Storage, version: int, options: dict[str, str] = OPTIONS, file_id: str = "N"
) -> Committed | Conflicted:
    write = Write(("b", "c"), "replacecommit", "INSERT", options=options, file_ids={"b": file_id, "c": file_id})
    with write.begin(storage) as tx:
        write_partition_metadata(storage, "c", tx.instant)
        return exchange_table(tx, config(version), write.write_files(tx))[0]


def visible(storage: Storage) -> list[tuple[str, str]]:
    slices = FileSystemView.load(TableMetaClient.open(storage)).latest_slices()
    for path in slices["base_path"].to_pylist():
        assert storage.read(path) == b"data", "a file that is seen is there"
    return list(zip(slices["partition"].to_pylist(), slices["file_id"].to_pylist(), strict=True))


OLD, NEW = [("a", "A"), ("b", "C")], [("b", "N"), ("c", "N")]


@pytest.mark.parametrize(("old", "new"), KINDS)
def test_nothing_is_left_of_the_old_table(tmp_path: Path, old: int, new: int) -> None:
    storage = old_table(tmp_path, old)
    outcome = overwrite(storage, new)
    assert isinstance(outcome, Committed)
    assert visible(storage) == NEW
    assert dict(TableConfig.load(storage).properties) == dict(config(new).properties)
    assert list(active(storage).timeline) == [outcome.instant]
    assert (outcome.completion is None) == (new < 8)
    assert len(active(storage).states(outcome.instant)) == 3
    assert {path.split("/")[0] for path in data_files(storage)} == {"b", "c"}
    names = storage.list(".hoodie", recursive=True)["path"].to_pylist()
    assert not [name for name in names if "archive" in name or "_version_" in name]
    Write(("c",), file_ids={"c": "M"}).run(storage)
    assert set(visible(storage)) == {*NEW, ("c", "M")}


@pytest.mark.parametrize(("old", "new"), KINDS)
def test_dying_exchanges(tmp_path: Path, old: int, new: int) -> None:
    folder, dead = tmp_path / "table", tmp_path / "dead"
    old_table(folder, old)
    shutil.copytree(folder, dead)
    probe = FaultyStorage(opened(dead))
    overwrite(probe, new)
    shutil.rmtree(dead)
    seen = []
    for nth in range(1, sum(name in WRITES for name, _ in probe.operations) + 1):
        shutil.copytree(folder, dead)
        with pytest.raises(Killed):
            overwrite(FaultyStorage(opened(dead), [Fault("writes", nth, "after", Killed)]), new)
        storage = opened(dead)
        found = visible(storage)
        seen.append(found)
        assert found in (OLD, NEW)
        if TableConfig.load(storage).name == "new":
            assert found == NEW
        assert isinstance(overwrite(storage, new, file_id="again"), Committed)
        assert visible(storage) == [("b", "again"), ("c", "again")]
        assert len(active(storage).timeline) == 1
        assert {path.split("/")[0] for path in data_files(storage)} == {"b", "c"}
        shutil.rmtree(dead)
    assert seen.index(NEW) == seen.count(OLD), "once the new rows are there they stay"


@pytest.mark.parametrize(("old", "new"), [(9, 9), (6, 9)])
def test_others_stand_against_it(tmp_path: Path, old: int, new: int) -> None:
    storage = old_table(tmp_path / "pending", old)
    others = Write(("a",), options=MULTI_WRITER)
    tx = others.begin(storage)
    outcome = overwrite(storage, new, MULTI_WRITER)
    assert isinstance(outcome, Conflicted)
    assert tx.instant in outcome.reason
    assert isinstance(tx.commit(others.write_files(tx)), Committed)
    assert len(visible(storage)) == 3

    storage = old_table(tmp_path / "done", old)
    mine = Write(("c",), "replacecommit", "INSERT", options=MULTI_WRITER)
    with mine.begin(storage) as tx:
        Write(("a",), options=MULTI_WRITER).run(storage)
        outcome = exchange_table(tx, config(new), mine.write_files(tx))[0]
    assert isinstance(outcome, Conflicted)
    assert "meanwhile" in outcome.reason
    assert len(visible(storage)) == 3


def test_timelines_that_would_share_a_folder(tmp_path: Path) -> None:
    storage = old_table(tmp_path, 6)
    mixed = config(9, **{"hoodie.timeline.path": ""})
    mine = Write(("c",), "replacecommit", "INSERT")
    with pytest.raises(UnsupportedTableError, match="timeline"), mine.begin(storage) as tx:
        exchange_table(tx, mixed, mine.write_files(tx))
    assert visible(storage) == OLD


def test_an_archive_among_everything_else(tmp_path: Path) -> None:
    storage = old_table(tmp_path, 6)
    TableConfig.load(storage).updated(storage, set={"hoodie.archivelog.folder": ""})
    storage.write(".hoodie/.commits_.archive.1_1-0-1", b"x")
    overwrite(storage, 6)
    assert visible(storage) == NEW
    assert not storage.exists(".hoodie/.commits_.archive.1_1-0-1")


def test_what_the_new_table_knows_of_its_index_takes_the_place_of_the_old(tmp_path: Path) -> None:
    storage, before, after = old_table(tmp_path, 9), BucketCounts.of(buckets("a,2")), BucketCounts.of(buckets("b,4"))
    store_counts(storage, before)
    mine = Write(("c",), "replacecommit", "INSERT")
    with mine.begin(storage) as tx:
        exchange_table(tx, config(9), mine.write_files(tx), lambda: store_counts(storage, after))
    assert load_counts(storage, ()) == after


def buckets(rules: str) -> Options:
    return Options.parse({"hoodie.bucket.index.num.buckets": "8", "hoodie.bucket.index.partition.expressions": rules})
