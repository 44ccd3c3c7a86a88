"""The framing of log files, on the golden tables' own."""

from __future__ import annotations

import contextlib
import json
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.avro import decode_record
from pyhudi.format.filenames import parse_names
from pyhudi.format.logfile import MAGIC, BlockType, Header, avro_datums, read_blocks
from tests.unit.format import golden


def block(kind: int, headers: dict[int, bytes], content: bytes) -> bytes:
    """Frame a block as Apache Hudi does."""
    pairs = b"".join(struct.pack(">ii", key, len(value)) + value for key, value in headers.items())
    inner = struct.pack(">iii", 1, kind, len(headers)) + pairs + struct.pack(">q", len(content)) + content
    inner += struct.pack(">i", 0)
    length = len(inner) + 8
    return MAGIC + struct.pack(">q", length) + inner + struct.pack(">q", length + len(MAGIC))


DATA = block(3, {0: b"1", 2: b'"string"'}, struct.pack(">iii", 3, 1, 3) + b"\x04hi")
ROLLBACK = block(0, {0: b"2", 1: b"1", 3: b"0"}, b"")


def log_files(table: str) -> list[tuple[str, bytes]]:
    every = [(name.rpartition("/")[2], data) for name, data in golden.files(table, metadata_table=True)]
    kinds = parse_names(pa.array([name for name, _ in every]))["kind"].to_pylist()
    archives = [name.startswith(".commits_.archive") for name, _ in every]
    return [f for f, kind, archive in zip(every, kinds, archives, strict=True) if kind in ("log", "cdc") or archive]


@pytest.mark.parametrize("table", golden.names())
def test_golden_files_have_only_whole_blocks(table: str) -> None:
    for name, data in log_files(table):
        blocks = list(read_blocks(data))
        assert not data or blocks, name
        at = 0
        for found in blocks:
            assert found.offset == at, name
            (length,) = struct.unpack_from(">q", data, at + 6)
            at += 14 + length
            if found.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA):
                schema = found.headers[Header.SCHEMA]
                records = [decode_record(schema, bytes(datum)) for datum in avro_datums(found.content)]
                assert set(records[0]) == {field["name"] for field in json.loads(schema)["fields"]}
            if found.type is BlockType.COMMAND:
                assert found.headers[Header.COMMAND_BLOCK_TYPE] == "0"
                assert len(found.content) == 0
        assert at == len(data), name


def test_blocks_and_records() -> None:
    first, second = read_blocks(DATA + ROLLBACK)
    assert (first.type, first.headers[Header.INSTANT_TIME], first.offset) == (BlockType.AVRO_DATA, "1", 0)
    assert [bytes(datum) for datum in avro_datums(first.content)] == [b"\x04hi"]
    assert (second.type, second.headers[Header.TARGET_INSTANT_TIME], second.offset) == (
        BlockType.COMMAND,
        "1",
        len(DATA),
    )
    assert list(read_blocks(b"")) == []


def test_a_cut_block_is_skipped() -> None:
    for cut in range(len(MAGIC), len(DATA)):
        types = [b.type for b in read_blocks(DATA + DATA[:cut] + ROLLBACK)]
        assert types[0] is BlockType.AVRO_DATA
        assert types[-1] is BlockType.COMMAND
        assert len(types) == 2
        assert [b.type for b in read_blocks(DATA + DATA[:cut])] == [BlockType.AVRO_DATA]


def test_what_is_no_log_file_is_refused() -> None:
    with pytest.raises(FormatError, match="not a log file"):
        list(read_blocks(b"PAR1"))
    with pytest.raises(FormatError):
        list(read_blocks(block(77, {}, b"")))


def test_records_that_run_over_are_refused() -> None:
    content = struct.pack(">iii", 3, 2, 3) + b"\x04hi"
    for broken in (content, content[:5], struct.pack(">iii", 3, 1, 30) + b"x", struct.pack(">ii", 9, 0)):
        with pytest.raises(FormatError):
            list(avro_datums(memoryview(broken)))


@given(st.binary(max_size=200), st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), max_size=4))
def test_flipped_bytes_are_refused_or_skipped(rest: bytes, flips: list[tuple[int, int]]) -> None:
    data = bytearray(DATA + ROLLBACK + DATA + rest)
    for place, bits in flips:
        data[place % len(data)] ^= bits
    with contextlib.suppress(FormatError):
        for found in read_blocks(bytes(data)):
            assert found.offset + len(found.content) <= len(data)
            if found.type is BlockType.AVRO_DATA:
                list(avro_datums(found.content))
