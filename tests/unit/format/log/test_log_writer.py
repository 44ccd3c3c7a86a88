"""Log files written and read back: every block type, positions, sizes, names."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi.errors import ConfigError, FormatError
from pyhudi.format.file_names import next_log_version, parse_names
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.log import (
    NATURAL_COLUMN,
    BlockType,
    LogBlock,
    LogBlockHeader,
    LogFile,
    LogOptions,
    LogSchema,
    LogSlice,
    LogWriter,
    decode_deletes,
    decode_records,
    scan_blocks,
)
from pyhudi.format.log.decoding.delete_block import delete_schema
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.meta_columns import add_meta_columns
from tests.unit.format.log.samples import tables

INSTANT = "20260101000000001"
WHERE = LogSlice("f-0", INSTANT, "1-2-3")
ROWS = add_meta_columns(pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("text", pa.string())]))
AVRO = to_avro(ROWS, "t")
NO_ORDERING = pa.schema([])
SCHEMA = LogSchema(AVRO, pa.schema([("ts", pa.int64())]), 9)


class Folder:
    """Files that appear when they have been written."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        assert name not in self.files
        sink = io.BytesIO()
        yield sink
        self.files[name] = sink.getvalue()

    def blocks(self) -> list[LogBlock]:
        return [block for data in self.files.values() for block in scan_blocks(data, with_corrupt=True)]


def rows(count: int, start: int = 0) -> pa.Table:
    ids = range(start, start + count)
    meta = [["c"] * count, [f"c_0_{i}" for i in ids], [f"k{i}" for i in ids], [""] * count, ["f-0"] * count]
    return pa.table([*meta, list(ids), [i * 2 for i in ids], [f"text {i}" * 3 for i in ids]], schema=ROWS)


def keys(count: int, start: int = 0, **columns: Any) -> pa.Table:
    names = [f"k{i}" for i in range(start, start + count)]
    return pa.table({"_hoodie_record_key": names, "_hoodie_partition_path": ["p"] * count, **columns})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tables(), st.sampled_from(["avro", "parquet"]))
def test_any_rows_come_back(case: tuple[pa.Table, str], data_format: str) -> None:
    table, avro = case
    folder = Folder()
    options = LogOptions(data_format=data_format)
    with LogWriter(
        folder.open, WHERE, LogBlockHeader(INSTANT, LogSchema(avro, NO_ORDERING, 9)), options=options
    ) as writer:
        for batch in table.to_batches(max_chunksize=5):
            writer.write(batch)
    if table.num_rows == 0:
        assert not folder.files
        return
    (block,) = folder.blocks()
    assert (block.instant, block.schema) == (INSTANT, avro)
    assert decode_records(block).to_pylist() == table.to_pylist()


def test_a_whole_file() -> None:
    folder = Folder()
    writer = LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA, is_partial=True, compacted_times=["1", "2"]))
    writer.delete(keys(2, ts=pa.array([5, None], pa.int64())))
    writer.write(rows(3))
    writer.write(rows(2, 3).to_batches()[0])
    files = writer.close()
    (name,) = folder.files
    assert files == [LogFile(name, 1, len(folder.files[name]), 5, 2)]
    assert name == f".f-0_{INSTANT}.log.1_1-2-3"
    data, deletes = folder.blocks()
    assert data.type is BlockType.AVRO_DATA
    assert data.is_partial
    assert data.compacted_times == ("1", "2")
    assert data.positions() is None
    assert decode_records(data).equals(rows(5))
    assert (deletes.type, deletes.instant, deletes.schema) == (BlockType.DELETE, INSTANT, AVRO)
    assert not deletes.is_partial
    assert decode_deletes(deletes, SCHEMA.ordering).to_pydict() == {
        "_hoodie_record_key": ["k0", "k1"],
        "_hoodie_partition_path": ["p", "p"],
        "ts": [5, None],
        NATURAL_COLUMN: [False, True],
    }


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_constants_need_no_columns(data_format: str) -> None:
    folder = Folder()
    constants = {"_hoodie_commit_time": "c", "_hoodie_partition_path": "", "_hoodie_file_name": "f-0"}
    options = LogOptions(data_format=data_format)
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA), options=options, constants=constants) as writer:
        writer.write(rows(4).drop_columns(list(constants)))
    (block,) = folder.blocks()
    assert decode_records(block).equals(rows(4))


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_records_with_positions_are_written_in_their_order(data_format: str) -> None:
    folder = Folder()
    options = LogOptions(data_format=data_format)
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA, base_instant="7"), options=options) as writer:
        writer.write(rows(3), pa.array([9, 2, 70_000]))
        writer.write(rows(2, 3), pa.array([1, 5]))
        writer.delete(keys(2), pa.array([8, 0]))
    data, deletes = folder.blocks()
    assert decode_records(data)["id"].to_pylist() == [3, 1, 4, 0, 2]
    for block, expected in ((data, [1, 2, 5, 9, 70_000]), (deletes, [0, 8])):
        positions = block.positions()
        assert positions is not None
        assert positions.tolist() == expected
        assert block.positions_base_instant == "7"
    assert decode_deletes(deletes, NO_ORDERING)["_hoodie_record_key"].to_pylist() == ["k1", "k0"]


@pytest.mark.parametrize("positions", [[1, None, 2], [1, 2, 1], None])
def test_positions_that_cannot_be_said_are_left_out(positions: list[int | None] | None) -> None:
    folder = Folder()
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA, base_instant="7")) as writer:
        writer.write(rows(3), positions and pa.array(positions, pa.int64()))
        writer.delete(keys(3), positions and pa.array(positions, pa.int64()))
    for block in folder.blocks():
        assert block.positions() is None
        assert block.positions_base_instant is None
    assert sorted(decode_records(folder.blocks()[0])["id"].to_pylist()) == [0, 1, 2]


def test_positions_need_a_base_file() -> None:
    folder = Folder()
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA)) as writer:
        writer.write(rows(2), pa.array([1, 0]))
    (block,) = folder.blocks()
    assert block.positions() is None
    assert decode_records(block)["id"].to_pylist() == [0, 1]


@pytest.mark.parametrize("data_format", ["avro", "parquet"])
def test_blocks_and_files_are_bounded(data_format: str) -> None:
    folder = Folder()
    limit = 60_000 if data_format == "avro" else 25_000
    options = LogOptions(max_file_size=limit, max_block_size=20_000, data_format=data_format)
    writer = LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA, base_instant="7"), options=options)
    for start in range(0, 5000, 50):
        writer.write(rows(50, start), pa.array(range(start, start + 50)))
    estimate = writer.estimated_size
    writer.delete(keys(10))
    files = writer.close()
    assert len(files) > 2
    assert [file.name for file in files] == list(folder.files)
    assert [file.version for file in files] == list(range(1, len(files) + 1))
    assert [file.size for file in files] == [len(data) for data in folder.files.values()]
    assert sum(file.num_records for file in files) == 5000
    assert sum(file.num_deletes for file in files) == 10
    assert all(file.size < limit + 30_000 for file in files)
    assert abs(estimate - sum(file.size for file in files)) < 40_000
    ids = []
    for block in folder.blocks()[:-1]:
        assert block.end - block.offset < 30_000
        found = decode_records(block)["id"].to_pylist()
        positions = block.positions()
        assert positions is not None
        assert positions.tolist() == found
        ids += found
    assert ids == list(range(5000))


def test_hfile_blocks_are_sorted_by_key() -> None:
    folder = Folder()
    options = LogOptions(data_format="hfile")
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA, base_instant="7"), options=options) as writer:
        writer.write(rows(15), pa.array(range(15)))
    (block,) = folder.blocks()
    assert block.type is BlockType.HFILE_DATA
    assert block.positions() is None
    assert decode_records(block).equals(rows(15).sort_by("_hoodie_record_key"))
    some = ["text", "_hoodie_record_key"]
    assert decode_records(block, columns=some).equals(rows(15).sort_by("_hoodie_record_key").select(some))
    writer = LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA), options=options)
    writer.write(rows(1))
    writer.write(rows(1))
    with pytest.raises(FormatError, match="unique"):
        writer.close()


def test_hfile_blocks_of_a_metadata_table() -> None:
    """Records have no record key; the field ``key`` is the key, and is stored empty."""
    schema = add_meta_columns(pa.schema([pa.field("key", pa.string(), nullable=False), ("type", pa.int32())]))
    table = pa.table([*[pa.nulls(3, pa.string())] * 5, ["b", "a", "ü"], pa.array([1, 2, 3], pa.int32())], schema=schema)
    folder = Folder()
    inside = LogSchema(to_avro(schema, "t"), NO_ORDERING, 9)
    with LogWriter(
        folder.open, WHERE, LogBlockHeader(INSTANT, inside), options=LogOptions(data_format="hfile")
    ) as writer:
        writer.write(table)
    (block,) = folder.blocks()
    assert decode_records(block).equals(table.sort_by("key"))
    values = pa.Table.from_batches(HFileReader(block.content()).batches()).to_pylist()
    expected = {"a": 4, "b": 2, "ü": 6}
    assert values == [{"key": k.encode(), "value": b"\0" * 6 + b"\2" + bytes((v,))} for k, v in expected.items()]


def test_change_data_and_rollbacks() -> None:
    folder = Folder()
    cdc = pa.schema([("op", pa.string()), ("record_key", pa.string())])
    schema = LogSchema(to_avro(cdc, "CDC"), NO_ORDERING, 8)
    where = LogSlice("f-0", INSTANT, "1-2-3", is_cdc=True)
    changes = pa.table([["u", "d"], ["k1", "k2"]], schema=cdc)
    with LogWriter(folder.open, where, LogBlockHeader(INSTANT, schema)) as writer:
        writer.write(changes)
    (name,) = folder.files
    assert parse_names(pa.array([name]))["kind"].to_pylist() == ["cdc"]
    (block,) = folder.blocks()
    assert block.type is BlockType.CDC_DATA
    assert decode_records(block).equals(changes)

    folder = Folder()
    writer = LogWriter(folder.open, LogSlice("f-0", "1", "1-0-1", version=4), LogBlockHeader("9", SCHEMA))
    writer.roll_back("8")
    (file,) = writer.close()
    assert (file.name, file.size) == (".f-0_1.log.4_1-0-1", len(folder.files[file.name]))
    (block,) = folder.blocks()
    assert block.is_rollback
    assert (block.instant, block.target_instant) == ("9", "8")


def test_an_error_leaves_no_file() -> None:
    folder = Folder()
    options = LogOptions(max_block_size=1)
    writer = LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA), options=options)
    with pytest.raises(FormatError, match="missing"):
        _write_all(writer, [rows(2), rows(2).drop_columns("id")])
    assert not folder.files


def _write_all(writer: LogWriter, parts: list[pa.Table]) -> None:
    with writer:
        for part in parts:
            writer.write(part)


def test_what_cannot_be_written_is_refused() -> None:
    folder = Folder()
    with pytest.raises(FormatError, match="2 positions for 1 rows"):
        LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA, base_instant="1")).write(
            rows(1), pa.array([1, 2])
        )
    with pytest.raises(ConfigError, match="orc"):
        LogOptions(data_format="orc")
    with pytest.raises(ConfigError, match="positive"):
        LogOptions(max_block_size=0)


ORDERINGS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int32(), [7, -1, None]),
    (pa.int64(), [0, 2**62, None]),
    (pa.float64(), [1.5, -0.0, None]),
    (pa.float32(), [1.5, 2.5, None]),
    (pa.bool_(), [True, False, None]),
    (pa.string(), ["", "ü", None]),
    (pa.binary(), [b"", b"\xff", None]),
    (pa.date32(), [19724, -1, None]),
    (pa.timestamp("us", "UTC"), [1, -5, None]),
    (pa.timestamp("ms"), [1, -5, None]),
    (pa.time64("us"), [1, 5, None]),
    (pa.time32("ms"), [1, 5, None]),
    (pa.decimal128(10, 2), ["12.34", "-0.01", None]),
    (pa.decimal128(30, 15), ["123456789012345.123456789012345", "0.000000000000001", None]),
    (pa.decimal128(38, 18), ["12345678901234567890.5", "-0.000000000000001", None]),
]


@pytest.mark.parametrize("kind", [kind for kind, _ in ORDERINGS], ids=str)
def test_ordering_values_of_deletes(kind: pa.DataType) -> None:
    raw = next(values for other, values in ORDERINGS if other == kind)
    stored = pa.int32() if pa.types.is_temporal(kind) and kind.bit_width == 32 else pa.int64()
    values = pa.array(raw, stored).view(kind) if pa.types.is_temporal(kind) else pa.array(raw).cast(kind)
    ordering = pa.schema([("o", kind)])
    deletes = keys(3, o=values)
    folder = Folder()
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, LogSchema(AVRO, ordering, 6))) as writer:
        writer.delete(deletes)
    (block,) = folder.blocks()
    decoded = decode_deletes(block, ordering)
    assert decoded.drop_columns(NATURAL_COLUMN).equals(deletes)
    assert decoded[NATURAL_COLUMN].to_pylist() == [False, False, True]


def test_several_ordering_fields_of_deletes() -> None:
    ordering = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int32())])
    columns = {"a": pa.array([1, None, 3, 4]), "b": ["x", "y", None, "z"], "c": pa.array([0, 0, 5, None], pa.int32())}
    deletes = keys(4, **columns, **{NATURAL_COLUMN: [False, False, False, True]})
    folder = Folder()
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, LogSchema(AVRO, ordering, 9))) as writer:
        writer.delete(deletes)
    (block,) = folder.blocks()
    decoded = decode_deletes(block, ordering).to_pylist()
    assert [(row["a"], row["b"], row["c"], row[NATURAL_COLUMN]) for row in decoded] == [
        (1, "x", 0, False),
        (None, "y", 0, False),
        (3, None, 5, False),
        (None, None, None, True),
    ]
    writer = LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, LogSchema(AVRO, ordering, 8)))
    writer.delete(deletes)
    with pytest.raises(FormatError, match="version 8 have one"):
        writer.close()


def test_deletes_that_cannot_be_said_are_refused() -> None:
    digits = pa.array(["0.000000000000000001"]).cast(pa.decimal128(20, 18))
    for values in (digits, pa.array([None], pa.list_(pa.int64()))):
        ordering = pa.schema([("o", values.type)])
        writer = LogWriter(Folder().open, WHERE, LogBlockHeader(INSTANT, LogSchema(AVRO, ordering, 9)))
        writer.delete(keys(1, o=values))
        with pytest.raises(FormatError, match="'o'"):
            writer.close()


_NUMBERS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=70), st.text(max_size=9), _NUMBERS)))
def test_any_deletes_come_back(deletes: list[tuple[str, str, int | None]]) -> None:
    schema = delete_schema(SCHEMA.ordering)
    values = [dict(zip(schema.names, (*delete, delete[2] is None), strict=True)) for delete in deletes]
    table = pa.Table.from_pylist(values, schema)
    folder = Folder()
    with LogWriter(folder.open, WHERE, LogBlockHeader(INSTANT, SCHEMA)) as writer:
        writer.delete(table)
    found = [decode_deletes(block, SCHEMA.ordering) for block in folder.blocks()]
    assert pa.concat_tables([schema.empty_table(), *found]).equals(table)


def test_versions_go_on_in_a_slice() -> None:
    logs = [".f-0_1.log.1_1-0-1", ".f-0_1.log.3_2-0-1.cdc", ".f-0_2.log.9_1-0-1", ".g-0_1.log.8_1-0-1"]
    names = pa.array([*logs, "f-0_1-0-1_1.parquet"])
    assert next_log_version(names, "f-0", "1") == 4
    assert next_log_version(names, "f-0", "3") == 1
    assert next_log_version(pa.array([], pa.string()), "f-0", "3") == 1
