"""A new table in the place of an old one: whole at every point of death, and never mixed with others' writes."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.config import Options
from pyhudi.errors import LockError, TransactionError, UnsupportedTableError, ValidationError
from pyhudi.index.bucket_counts import BucketCounts, load_counts, store_first_counts
from pyhudi.spark.write.precommit_validation import StagedTable
from pyhudi.storage import Storage, open_storage
from pyhudi.table.config.properties_text import table_checksum
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.partition_metadata import write_partition_metadata
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.action_avro import encode_record
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.timeline.instant import State
from pyhudi.transaction.commit_outcome import Committed, Conflicted
from pyhudi.transaction.table_overwrite.overwrite_compatibility import RetainedParts, retained_parts
from pyhudi.transaction.table_overwrite.table_replacement import replace_table
from pyhudi.transaction.transaction import Transaction
from tests.fault_injection import WRITES, Fault, FaultyStorage, Killed, SuspendedStorage
from tests.properties import places
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
    storage: Storage,
    version: int,
    options: dict[str, str] = OPTIONS,
    file_id: str = "N",
    retained: RetainedParts = RetainedParts.NOTHING,
) -> Committed | Conflicted:
    write = Write(("b", "c"), "replacecommit", "INSERT", options=options, file_ids={"b": file_id, "c": file_id})
    with write.begin(storage) as tx:
        write_partition_metadata(storage, "c", tx.instant)
        return replace_table(tx, config(version), write.write_files(tx), retained=retained)[0]


def replaced(storage: Storage) -> set[tuple[str, str]]:
    groups = FileSystemView.load(TableMetaClient.open(storage)).replaced_groups()
    return set(zip(groups["partition"].to_pylist(), groups["file_id"].to_pylist(), strict=True))


def plan(storage: Storage, action: str, instant: str) -> None:
    """A table service that is planned and not carried out."""
    active(storage).create_requested(action, instant, encode_record(action, State.REQUESTED, {"operations": []}, 9))


def visible(storage: Storage, as_of: str | None = None) -> list[tuple[str, str]]:
    slices = FileSystemView.load(TableMetaClient.open(storage)).latest_slices(as_of)
    for path in slices["base_path"].to_pylist():
        assert storage.read(path) == b"data", "a file that is seen is there"
    return list(zip(slices["partition"].to_pylist(), slices["file_id"].to_pylist(), strict=True))


def groups_of(table: TableSnapshot) -> list[tuple[str, str]]:
    slices = FileSystemView.load(table).latest_slices()
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
def test_a_validator_sees_the_new_table_and_may_refuse_it(tmp_path: Path, old: int, new: int) -> None:
    storage = old_table(tmp_path, old)
    write = Write(("b", "c"), "replacecommit", "INSERT", file_ids={"b": "N", "c": "N"})

    def refuse(tx: Transaction, metadata: CommitMetadata) -> None:
        before = TableSnapshot(storage, tx.config, tx.active.reload())
        staged = StagedTable.from_commit(before, tx.instant, metadata, replaced_by=config(new))
        assert groups_of(staged.before) == OLD
        assert groups_of(staged.after) == groups_of(staged.after.reload()) == NEW
        assert staged.partitions == ("a", "b", "c")
        raise ValidationError("refused")

    def overwritten() -> None:
        with write.begin(storage) as tx:
            write_partition_metadata(storage, "c", tx.instant)
            replace_table(tx, config(new), write.write_files(tx), validate=partial(refuse, tx))

    with pytest.raises(ValidationError, match="refused"):
        overwritten()
    assert visible(storage) == OLD
    assert TableConfig.load(storage).version == old


@pytest.mark.parametrize(("old", "new"), KINDS)
def test_files_stay_for_who_is_reading_them(tmp_path: Path, old: int, new: int) -> None:
    storage = old_table(tmp_path, old)
    before = {path for path in data_files(storage) if not path.endswith("metadata")}
    done = overwrite(storage, new, retained=RetainedParts.FILES)
    assert isinstance(done, Committed)
    assert before < data_files(storage)
    assert visible(storage) == NEW
    assert list(active(storage).timeline) == [done.instant]
    assert not {("a", "A"), ("b", "B"), ("b", "C")} - replaced(storage), "a cleaner knows what to delete"


@pytest.mark.parametrize(("old", "new"), KINDS)
def test_files_of_an_overwritten_table_do_not_come_back(tmp_path: Path, old: int, new: int) -> None:
    storage = old_table(tmp_path, old)
    done = overwrite(storage, new, retained=RetainedParts.FILES)
    services = HudiTable.for_path(str(tmp_path), OPTIONS).services
    with pytest.raises(TransactionError, match=r"has overwritten a table .* files still exist"):
        services.rollback()
    assert visible(storage) == NEW
    storage.delete_many(path for path in data_files(storage) if "/A_" in path or "/B_" in path or "/C_" in path)
    assert services.rollback().instants == (done.instant.requested,)
    Write(("c",), file_ids={"c": "M"}).run(storage)
    assert visible(storage) == [("c", "M")]


@pytest.mark.parametrize("version", [6, 9])
def test_history_stays(tmp_path: Path, version: int) -> None:
    storage = old_table(tmp_path, version)
    plan(storage, "compaction", "20240101000000000")
    before, first = list(active(storage).timeline.completed()), data_files(storage)
    done = overwrite(storage, version, retained=RetainedParts.HISTORY)
    assert isinstance(done, Committed)
    assert first < data_files(storage)
    assert list(active(storage).timeline) == [*before, done.instant], "and no plan of the old table"
    assert all(len(active(storage).states(instant)) == 3 for instant in before)
    assert visible(storage) == NEW
    assert [group[1] for group in visible(storage, before[-1].requested)] == ["A", "C"]
    assert storage.exists(".hoodie/archived/.commits_.archive.1_1-0-1")
    assert isinstance(overwrite(storage, version, file_id="M", retained=RetainedParts.HISTORY), Committed)
    assert {group[1] for group in visible(storage)} == {"M"}


PARTITIONED = {"hoodie.table.partition.fields": "p"}


@pytest.mark.parametrize(
    ("changed", "columns", "stays"),
    [
        ({"hoodie.table.name": "renamed"}, {}, RetainedParts.HISTORY),
        ({}, {"more": pa.int64()}, RetainedParts.HISTORY),
        ({}, {"v": pa.int64()}, RetainedParts.FILES),
        ({"hoodie.table.recordkey.fields": "v"}, {}, RetainedParts.FILES),
        ({"hoodie.table.type": "MERGE_ON_READ"}, {}, RetainedParts.FILES),
        ({"hoodie.table.version": "8"}, {}, RetainedParts.FILES),
        ({"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}, {}, RetainedParts.FILES),
        ({"hoodie.table.partition.fields": "v"}, {}, RetainedParts.NOTHING),
        ({"hoodie.datasource.write.hive_style_partitioning": "true"}, {}, RetainedParts.NOTHING),
        ({}, {"p": pa.date32()}, RetainedParts.NOTHING),
    ],
)
def test_what_stays(changed: dict[str, str], columns: dict[str, pa.DataType], stays: RetainedParts) -> None:
    kinds = {"id": pa.string(), "v": pa.string(), "p": pa.string()}
    old, new = config(9, **PARTITIONED), config(9, **PARTITIONED | changed)
    assert retained_parts(old, pa.schema(kinds), new, pa.schema(kinds | columns)) is stays
    without = RetainedParts.FILES if stays is RetainedParts.HISTORY else stays
    assert retained_parts(old, pa.schema(kinds), new, pa.schema(kinds | columns), columns_keep_names=False) is without


@pytest.mark.parametrize(
    ("old", "new", "retained"),
    [
        (9, 9, RetainedParts.HISTORY),
        (8, 9, RetainedParts.FILES),
        (6, 6, RetainedParts.HISTORY),
        (6, 9, RetainedParts.FILES),
        (9, 6, RetainedParts.NOTHING),
    ],
)
def test_dying_exchanges(tmp_path: Path, old: int, new: int, retained: RetainedParts) -> None:
    folder, dead = tmp_path / "table", tmp_path / "dead"
    first = data_files(old_table(folder, old))
    shutil.copytree(folder, dead)
    probe = FaultyStorage(opened(dead))
    overwrite(probe, new, retained=retained)
    shutil.rmtree(dead)
    seen = []
    for nth in places(sum(name in WRITES for name, _ in probe.operations)):
        shutil.copytree(folder, dead)
        with pytest.raises(Killed):
            overwrite(FaultyStorage(opened(dead), [Fault("writes", nth + 1, "after", Killed)]), new, retained=retained)
        storage = opened(dead)
        found = visible(storage)
        seen.append(found)
        assert found in (OLD, NEW)
        if TableConfig.load(storage).name == "new":
            assert found == NEW
        assert isinstance(overwrite(storage, new, file_id="again", retained=retained), Committed)
        assert visible(storage) == [("b", "again"), ("c", "again")]
        assert not active(storage).timeline.pending()
        if retained is not RetainedParts.NOTHING:
            assert {path for path in first if not path.endswith("metadata")} <= data_files(storage)
        assert isinstance(overwrite(storage, new, file_id="last"), Committed)
        assert visible(storage) == [("b", "last"), ("c", "last")]
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
        outcome = replace_table(tx, config(new), mine.write_files(tx))[0]
    assert isinstance(outcome, Conflicted)
    assert "concurrently" in outcome.reason
    assert len(visible(storage)) == 3


def test_timelines_that_would_share_a_folder(tmp_path: Path) -> None:
    storage = old_table(tmp_path, 6)
    mixed = config(9, **{"hoodie.timeline.path": ""})
    mine = Write(("c",), "replacecommit", "INSERT")
    with pytest.raises(UnsupportedTableError, match="timeline"), mine.begin(storage) as tx:
        replace_table(tx, mixed, mine.write_files(tx))
    assert visible(storage) == OLD


def test_an_archive_among_everything_else(tmp_path: Path) -> None:
    storage = old_table(tmp_path, 6)
    TableConfig.load(storage).updated(storage, set={"hoodie.archivelog.folder": ""})
    storage.write(".hoodie/.commits_.archive.1_1-0-1", b"x")
    overwrite(storage, 6)
    assert visible(storage) == NEW
    assert not storage.exists(".hoodie/.commits_.archive.1_1-0-1")


def test_what_the_new_table_knows_of_its_index_takes_the_place_of_the_old(tmp_path: Path) -> None:
    storage, before, after = (
        old_table(tmp_path, 9),
        BucketCounts.from_options(buckets("a,2")),
        BucketCounts.from_options(buckets("b,4")),
    )
    store_first_counts(storage, before)
    mine = Write(("c",), "replacecommit", "INSERT")
    with mine.begin(storage) as tx:
        replace_table(tx, config(9), mine.write_files(tx), keep_index=lambda: store_first_counts(storage, after))
    assert load_counts(storage, active(storage).timeline) == after


def buckets(rules: str) -> Options:
    return Options.parse({"hoodie.bucket.index.num.buckets": "8", "hoodie.bucket.index.partition.expressions": rules})


LOCKED = {**OPTIONS, "hoodie.write.lock.provider": "FileSystemBasedLockProvider"}


def test_a_lock_that_was_lost_before_the_properties_change(tmp_path: Path) -> None:
    """Another writer has added to the old table since its rows were replaced."""
    storage = old_table(tmp_path, 9)
    other = Write(("a",), options=LOCKED, file_ids={"a": "X"})
    suspended = SuspendedStorage(storage, "delete_tree", "bucket", lambda: other.run(storage))
    with pytest.raises(LockError, match=r"keeps its properties.*no longer held.*Run the operation again"):
        overwrite(suspended, 9, LOCKED)
    assert TableConfig.load(storage).name == "t"
    assert sorted(visible(storage)) == [("a", "X"), *NEW]
    assert isinstance(overwrite(storage, 9, LOCKED, "M"), Committed)
    assert sorted(visible(storage)) == [("b", "M"), ("c", "M")]


def test_a_lock_that_was_lost_before_the_old_table_is_deleted(tmp_path: Path) -> None:
    """Another writer has added to the new table."""
    storage = old_table(tmp_path, 9)
    other = Write(("c",), options=LOCKED, file_ids={"c": "X"})
    suspended = SuspendedStorage(storage, "replace", r"hoodie\.properties$", lambda: other.run(storage))
    assert isinstance(overwrite(suspended, 9, LOCKED), Committed)
    assert suspended.was_suspended
    assert TableConfig.load(storage).name == "new"
    assert sorted(visible(storage)) == [*NEW, ("c", "X")]
