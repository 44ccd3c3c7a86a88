"""The framing of log files: golden ones, cut ones, damaged ones."""

from __future__ import annotations

import contextlib
import io
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.log import BlockType, Header, LogBlock, avro_datums, scan_blocks
from pyhudi.format.log.log_block import MAGIC
from tests.unit.format import golden
from tests.unit.format.log.samples import block, golden_log_files

DATA = block(3, {0: b"1", 2: b'"string"'}, struct.pack(">iii", 3, 1, 3) + b"\x04hi")
ROLLBACK = block(0, {0: b"2", 1: b"1", 3: b"0"}, b"")


def summary(blocks: Any) -> list[tuple[BlockType, int, int]]:
    return [(b.type, b.offset, b.end) for b in blocks]


@pytest.mark.parametrize("table", golden.names())
def test_golden_files_have_only_whole_blocks(table: str) -> None:
    for name, data in golden_log_files(table):
        at = 0
        for found in scan_blocks(data, with_corrupt=True):
            assert found.type is not BlockType.CORRUPT
            assert found.offset == at, name
            at = found.end
            assert found.instant is not None or name.startswith(".commits_")
            if found.type is BlockType.COMMAND:
                assert found.is_rollback
                assert found.target_instant is not None
                assert len(found.content()) == 0
        assert at == len(data), name


def test_blocks_and_records() -> None:
    first, second = scan_blocks(DATA + ROLLBACK)
    assert (first.type, first.instant, first.offset, first.end) == (BlockType.AVRO_DATA, "1", 0, len(DATA))
    assert [bytes(datum) for datum in avro_datums(first.content())] == [b"\x04hi"]
    assert (second.type, second.target_instant, second.offset) == (BlockType.COMMAND, "1", len(DATA))
    assert list(scan_blocks(b"")) == []


def test_headers_have_names() -> None:
    headers = {0: b"9", 2: b"{}", 4: b"1,2", 6: b"0,3", 7: b"TRUE", 8: b"7", 77: b"new"}
    (found,) = scan_blocks(block(3, headers, b""))
    assert found.schema == "{}"
    assert found.compacted_times == ("1", "2")
    assert found.is_partial
    assert found.positions_base_instant == "7"
    assert found.positions() is None
    assert found.headers[77] == "new"
    assert found.headers[Header.INSTANT_TIME] == "9"


class Counting:
    """A range reader that remembers what was asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.requests: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return len(self._data)

    def read_range(self, offset: int, length: int) -> memoryview:
        self.requests.append((offset, min(length, self.size - offset)))
        return memoryview(self._data)[offset : offset + length]


def test_contents_are_passed_over() -> None:
    big = block(5, {0: b"3"}, bytes(3_000_000))
    source = Counting(big + DATA + big + ROLLBACK)
    blocks = list(scan_blocks(source))
    assert [b.type for b in blocks] == [
        BlockType.PARQUET_DATA,
        BlockType.AVRO_DATA,
        BlockType.PARQUET_DATA,
        BlockType.COMMAND,
    ]
    assert sum(length for _, length in source.requests) < 500_000
    assert len(source.requests) <= 4
    assert len(blocks[2].content()) == 3_000_000


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview, io.BytesIO, pa.BufferReader, Counting])
def test_sources(wrap: Any) -> None:
    first, second = scan_blocks(wrap(DATA + ROLLBACK))
    assert bytes(first.content()) == struct.pack(">iii", 3, 1, 3) + b"\x04hi"
    assert second.is_rollback


def test_a_cut_block_is_skipped_wherever_it_stands() -> None:
    for cut in range(len(MAGIC), len(DATA)):
        found = list(scan_blocks(DATA + DATA[:cut] + ROLLBACK, with_corrupt=True))
        assert [b.type for b in found] == [BlockType.AVRO_DATA, BlockType.CORRUPT, BlockType.COMMAND]
        assert (found[1].offset, found[1].end) == (len(DATA), len(DATA) + cut)
        assert summary(scan_blocks(DATA[:cut] + DATA)) == [(BlockType.AVRO_DATA, cut, cut + len(DATA))]
        assert summary(scan_blocks(DATA + DATA[:cut])) == [(BlockType.AVRO_DATA, 0, len(DATA))]


def test_less_than_a_magic_is_the_end() -> None:
    for cut in range(len(MAGIC)):
        assert list(scan_blocks(b"x" * cut)) == []
        assert summary(scan_blocks(DATA + b"x" * cut)) == [(BlockType.AVRO_DATA, 0, len(DATA))]


def test_a_stretch_without_magic_is_skipped_to_the_end() -> None:
    garbage = b"#HUD!" * 500_000
    found = list(scan_blocks(DATA[:20] + garbage + ROLLBACK, with_corrupt=True))
    assert [b.type for b in found] == [BlockType.CORRUPT, BlockType.COMMAND]
    assert found[1].offset == 20 + len(garbage)
    assert list(scan_blocks(DATA[:20] + garbage)) == []


def test_many_magics_without_blocks_take_no_longer() -> None:
    assert summary(scan_blocks(MAGIC * 200_000 + ROLLBACK)) == [
        (BlockType.COMMAND, 1_200_000, 1_200_000 + len(ROLLBACK))
    ]


@pytest.mark.parametrize("before", range(8))
def test_a_magic_across_the_bounds_of_what_is_read_at_once(before: int) -> None:
    garbage = DATA[:20] + bytes((1 << 20) - before)
    assert summary(scan_blocks(garbage + ROLLBACK)) == [(BlockType.COMMAND, len(garbage), len(garbage) + len(ROLLBACK))]


def test_the_length_has_32_bits() -> None:
    high = bytearray(DATA)
    high[6] = 0x40  # the original drops the upper half of the field
    assert summary(scan_blocks(bytes(high))) == [(BlockType.AVRO_DATA, 0, len(DATA))]


def test_what_is_no_log_file_is_refused() -> None:
    with pytest.raises(FormatError, match="not a log file"):
        list(scan_blocks(b"PAR1PAR1"))
    for broken in (block(77, {}, b""), block(3, {0: b"\xff"}, b"")):
        with pytest.raises(FormatError, match="cannot parse"):
            list(scan_blocks(broken))
    version = DATA[:17] + b"\x02" + DATA[18:]
    with pytest.raises(FormatError, match="format version 2"):
        list(scan_blocks(version))


def test_a_content_length_that_lies_is_refused() -> None:
    (found,) = scan_blocks(DATA)
    at = found.content_offset - 1
    for change in (1, 2, 16):
        with pytest.raises(FormatError):
            list(scan_blocks(DATA[:at] + bytes((DATA[at] ^ change,)) + DATA[at + 1 :]))


def test_a_file_that_shrinks_is_noticed() -> None:
    file = io.BytesIO(DATA)
    (found,) = scan_blocks(file)
    file.truncate(found.content_offset + 2)
    with pytest.raises(FormatError, match="truncated"):
        found.content()


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
        for found in scan_blocks(bytes(data)):
            assert isinstance(found, LogBlock)
            assert found.end <= len(data)
            if found.type is BlockType.AVRO_DATA:
                list(avro_datums(found.content()))
