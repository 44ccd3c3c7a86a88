"""What writes make of a metadata table stays readable, whatever became of its partitions before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.errors import MetadataTableError
from pyhudi.metadata.indexes.expression_index_definition import ExpressionIndex, expression_definition
from pyhudi.metadata.indexes.index_declarations import declare_partitions, drop_partitions
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.secondary_index_definition import secondary_definition
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.metadata.records.metadata_record import record_schema
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.storage import Storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.instant import Instant
from tests.unit.services.merge_on_read_table import MorTable, row
from tests.unit.transaction.tables import MULTI_WRITER, WITH_METADATA, Write, active, data_files, make_table
from tests.unit.transaction.test_writer_death import opened

PARTITIONED = {"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "id"}
SEVERAL = {**MULTI_WRITER, "hoodie.metadata.enable": "true"}
INDEX_FILE = "record_index/.record-index-0000-0_{}.log.1_0-0-0"


def made(folder: Path, version: int) -> Storage:
    storage = opened(folder)
    make_table(storage, version, PARTITIONED)
    return storage


def metadata(storage: Storage) -> MetadataTable:
    return MetadataTable.open(TableSnapshot(storage, TableConfig.load(storage), active(storage)))


def listed(storage: Storage) -> set[str]:
    """The data files by the metadata table."""
    return set(list_from_metadata(metadata(storage), None)[0]["path"].to_pylist())


def newest_file(storage: Storage, partition: str) -> str:
    own = metadata(storage).timeline.active
    stats = own.commit_metadata(own.timeline.completed().writes().by_completion()[-1]).stats["path"].to_pylist()
    return next(path for path in stats if path.startswith(partition))


def test_a_partition_that_was_built_anew_is_complete(tmp_path: Path) -> None:
    table = MorTable(tmp_path / "t")
    table.load([row("a0", "a", 1, "x"), row("b0", "b", 1, "x")])
    table.delta([row("a0", "a", 2, "y")])
    storage = table.client.storage
    drop_partitions(storage, TableConfig.load(storage), ["column_stats", "partition_stats"])
    for turn in range(2):
        table.delta([row("a0", "a", 3 + turn, "z"), row("b0", "b", 3, "z")])
        found = metadata(storage)
        for partition in ("column_stats", "files", "partition_stats"):
            assert found.groups(partition).num_rows
    storage.delete(f"{METADATA_FOLDER}/{newest_file(storage, 'column_stats')}")
    with pytest.raises(MetadataTableError, match="is missing"):
        metadata(storage).groups("column_stats")


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_that_is_made_again_is_not_taken_for_the_old_one(tmp_path: Path, version: int) -> None:
    for _ in range(2):
        storage = made(tmp_path / "t", version)
        Write(options=WITH_METADATA).run(storage)
        assert listed(storage) == data_files(storage)
        for name in storage.list_dirs():
            storage.delete_tree(name)


@pytest.mark.parametrize("version", [6, 9])
def test_a_partition_that_is_not_there_can_be_deleted(tmp_path: Path, version: int) -> None:
    storage = made(tmp_path / "t", version)
    Write(options=WITH_METADATA).run(storage)
    gone: tuple[tuple[str, str | None], ...] = (("nowhere", None),)
    Write((), "replacecommit", "DELETE_PARTITION", WITH_METADATA, replaced=gone).run(storage)  # type: ignore[arg-type]
    assert listed(storage) == data_files(storage)


@pytest.mark.parametrize("lost", [True, False])
def test_an_index_that_was_built_anew_beside_a_write_is_taken_out_of_use(tmp_path: Path, lost: bool) -> None:
    storage, write = made(tmp_path / "t", 9), Write(options=SEVERAL)
    write.run(storage)
    config = TableConfig.load(storage)
    declared = ",".join(sorted({*config.metadata_partitions, "record_index"}))
    config.updated(storage, set={"hoodie.table.metadata.partitions": declared})
    tx = write.begin(storage)
    path = INDEX_FILE.format(tx.instant)
    storage.write(f"{METADATA_FOLDER}/{path}", b"")
    if lost:
        storage.delete_tree(f"{METADATA_FOLDER}/record_index")
        storage.write(f"{METADATA_FOLDER}/{INDEX_FILE.format('0' * 17)}", b"")
    stat = {"partitionPath": "record_index", "fileId": "record-index-0000-0", "path": path, "logVersion": 1}
    tx.commit(write.write_files(tx), index=IndexDelta(frozenset({"record_index"}), (stat,)))
    assert ("record_index" in TableConfig.load(storage).metadata_partitions) is not lost
    assert listed(storage) == data_files(storage)


def test_an_index_of_a_column_whose_type_changes_is_taken_out_of_use(tmp_path: Path) -> None:
    """A day is a number in a secondary index, and would be looked for as a text."""

    def columns(kind: pa.DataType) -> str:
        return to_avro(pa.schema([("id", pa.string()), ("p", pa.string()), ("d", kind), ("e", pa.string())]), "t")

    storage = made(tmp_path / "t", 9)
    Write(options=WITH_METADATA, schema=columns(pa.date32())).run(storage)
    lower = {
        name: ExpressionIndex.from_options(f"expr_index_{name}", "column_stats", name, {"expr": "lower"})
        for name in "de"
    }
    definitions = {
        "secondary_index_d": secondary_definition("secondary_index_d", "d", 9),
        **{one.partition: expression_definition(one, {"expr": "lower"}, 9) for one in lower.values()},
    }
    kept = ["record_index", *definitions]
    declare_partitions(storage, TableConfig.load(storage), kept, definitions)
    for kind, left in ((pa.date32(), kept), (pa.string(), ["record_index", "expr_index_e"])):
        write = Write(options=WITH_METADATA, schema=columns(kind))
        tx = write.begin(storage)
        tx.commit(write.write_files(tx), index=IndexDelta(frozenset(kept), ()))
        declared = TableConfig.load(storage).metadata_partitions
        assert {name for name in declared if "index" in name} == set(left)
        assert load_definitions(storage, TableConfig.load(storage)).keys() & set(kept) == set(left) - {"record_index"}


def last_write(storage: Storage) -> tuple[ActiveTimeline, Instant]:
    """Return the timeline of the metadata table, and its last write."""
    own = metadata(storage).timeline.active
    last = own.timeline.completed().writes().last
    assert last is not None
    return own, last


def test_the_wider_schema_of_another_release_stays(tmp_path: Path) -> None:
    """1.2.0 merges log blocks of version 6 by the schema of the last commit, and fails if it has fewer fields."""
    storage = made(tmp_path / "t", 6)
    Write(options=WITH_METADATA).run(storage)
    own, last = last_write(storage)
    wider = record_schema(9, meta_columns=False)
    done = own.commit_metadata(last)
    storage.write(own.path(last), replace(done, extra={**done.extra, "schema": wider}).encode(6, last.action))
    Write(options=WITH_METADATA).run(storage)
    own, later = last_write(storage)
    assert later.requested > last.requested
    assert own.commit_metadata(later).schema_json == wider


def test_a_commit_of_the_metadata_table_that_cannot_be_read(tmp_path: Path) -> None:
    """No write needs what it has recorded."""
    storage = made(tmp_path / "t", 6)
    Write(options=WITH_METADATA).run(storage)
    own, last = last_write(storage)
    storage.write(own.path(last), b"")
    Write(options=WITH_METADATA).run(storage)
    assert listed(storage) == data_files(storage)
