"""Damaged log files: whatever is cut or flipped, there is never a wrong row.

Blocks that were written here tell by their checksums. Those of other writers have none, and what cannot be told there
is that a value is another one; but nothing may be made of bytes that no writer writes.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyhudi.errors import FormatError
from pyhudi.format.log import (
    BlockType,
    Header,
    LogBlock,
    LogBlockHeader,
    LogOptions,
    LogSchema,
    LogSlice,
    LogWriter,
    decode_deletes,
    decode_records,
    scan_blocks,
)
from pyhudi.format.log.decoding.avro_block import decode_avro
from pyhudi.format.log.log_block import MAGIC
from pyhudi.schema.converters.arrow_avro import to_avro
from tests.cases import seldom
from tests.unit.format.log.decoding.test_delete_block import decoded, delete_list, several, wrapped
from tests.unit.format.log.samples import block, datums_of, framed
from tests.unit.format.log.test_log_writer import Folder

ROWS = pa.schema([("_hoodie_record_key", pa.string()), ("n", pa.int64()), ("l", pa.list_(pa.float64()))])
ORDERING = pa.schema([("n", pa.int64())])
TABLE = pa.table([["a", "b", None], [1, None, -300], [[0.5], None, []]], schema=ROWS)


def write(data_format: str) -> bytes:
    """A file with records, deletes with and without ordering values, positions, and a rollback."""
    folder = Folder()
    schema = LogSchema(to_avro(ROWS, "t"), ORDERING, 9)
    options = LogOptions(data_format=data_format)
    deletes = pa.table(
        {"_hoodie_record_key": ["x", "y"], "_hoodie_partition_path": ["p", "p"], "n": pa.array([7, None])}
    )
    table = TABLE if data_format != "hfile" else TABLE.slice(0, 2)
    writer = LogWriter(
        folder.open, LogSlice("f", "1", "1-0-1"), LogBlockHeader("2", schema, base_instant="1"), options=options
    )
    writer.write(table, pa.array(range(table.num_rows)))
    writer.delete(deletes, pa.array([3, 4]))
    writer.roll_back("0")
    writer.write(table)
    writer.close()
    (data,) = folder.files.values()
    return data


def read(found: LogBlock) -> Any:
    """All that a reader takes from a block."""
    positions = found.positions()
    rows: Any = None
    if found.type is BlockType.DELETE:
        rows = decode_deletes(found, ORDERING).to_pylist()
    elif found.type is BlockType.COMMAND:
        rows = bytes(found.content())
    else:
        rows = decode_records(found).to_pylist()
    headers = (found.instant, found.target_instant, found.is_rollback, found.schema, found.is_partial)
    where = found.compacted_times, found.positions_base_instant, None if positions is None else positions.tolist()
    return found.type, headers, where, rows


FORMATS = ["avro", "parquet", "hfile"]


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("flip", [1, 0x80, 0xFF], ids=str)
def test_flipped_bits_of_our_files(data_format: str, flip: int) -> None:
    data = write(data_format)
    right = {data[b.offset : b.end]: read(b) for b in scan_blocks(data)}
    assert len(right) == 4
    whole = list(right)
    for at in range(len(data)):
        broken = data[:at] + bytes((data[at] ^ flip,)) + data[at + 1 :]
        with contextlib.suppress(FormatError):
            found = []
            for b in scan_blocks(broken):
                raw = broken[b.offset : b.end]
                if raw not in right:
                    # damage that does not matter: in the unused half of the length
                    assert read(b) in right.values()
                    raw = next(r for r in whole if len(r) == len(raw) and r not in found)
                found.append(raw)
            places = [whole.index(raw) for raw in found]
            assert places == sorted(set(places)), at


@pytest.mark.parametrize("data_format", FORMATS)
def test_our_files_cut_anywhere(data_format: str) -> None:
    data = write(data_format)
    ends = [b.end for b in scan_blocks(data)]
    for cut in range(len(data)):
        # a block counts as soon as nothing of the next one's magic contradicts; then all bytes of it are there
        assert [b.end for b in scan_blocks(data[:cut])] in (
            [end for end in ends if end <= cut],
            [end for end in ends if end + len(MAGIC) <= cut],
        )


@pytest.mark.parametrize("data_format", FORMATS)
def test_pieces_missing_from_our_files(data_format: str) -> None:
    data = write(data_format)
    right = [data[b.offset : b.end] for b in scan_blocks(data)]
    for at in range(0, len(data), 3):
        for size in (1, 9, 100):
            broken = data[:at] + data[at + size :]
            with contextlib.suppress(FormatError):
                assert all(broken[b.offset : b.end] in right for b in scan_blocks(broken))


def as_the_original(data: bytes) -> Iterator[tuple[int, int]]:
    """Where blocks are, by the rules of Apache Hudi's reader, one after another in the order in which it looks."""
    at = 0
    while len(data) - at >= 6:
        if data[at : at + 6] != MAGIC:
            raise FormatError("no magic")
        start = at + 14
        length = struct.unpack(">i", data[at + 10 : start])[0] if start <= len(data) else 0
        end = start + length
        last = data[max(0, end - 8) : max(0, end)]
        whole = length > 8 and len(last) == 8 and struct.unpack(">q", last)[0] == length + 6
        if whole and (len(data) - end < 6 or data[end : end + 6] == MAGIC):
            yield at, end
            at = end
        else:
            at = data.find(MAGIC, at + 6) if data.find(MAGIC, at + 6) >= 0 else len(data)


def test_blocks_of_others_are_skipped_as_by_the_original() -> None:
    one = block(0, {0: "2", 1: "1", 3: "0"}, b"")
    data = one + block(3, {0: "3"}, b"some #HUDI# content") + one
    for at in range(len(data)):
        for bit in range(8):
            broken = data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]
            with contextlib.suppress(FormatError):
                found = [(b.offset, b.end) for b in scan_blocks(broken)]
                assert found == list(as_the_original(broken)), (at, bit)


def unsealed(data_format: str) -> tuple[dict[int, str], int, bytes]:
    """A data block without checksums, as others write it: headers, type, content."""
    first = next(b for b in scan_blocks(write(data_format)) if b.type is not BlockType.DELETE)
    headers = {key: value for key, value in first.headers.items() if key != Header.BLOCK_IDENTIFIER}
    return headers, int(first.type), bytes(first.content())


EVERY = [13, seldom(1)]


@pytest.mark.parametrize("step", EVERY)
@pytest.mark.parametrize("data_format", ["parquet", "hfile"])
def test_blocks_of_others_are_read_or_refused(data_format: str, step: int) -> None:
    """Values may be others, which nothing tells; but nothing else than a FormatError is raised, and text is text."""
    headers, kind, content = unsealed(data_format)
    whole = block(kind, headers, content)
    refused = 0
    for at in range(whole.index(content[:64]), len(whole), step):
        for flip in (0x01, 0x80):
            broken = whole[:at] + bytes((whole[at] ^ flip,)) + whole[at + 1 :]
            try:
                for b in scan_blocks(broken):
                    read(b)
            except FormatError:
                refused += 1
    assert refused


@pytest.mark.parametrize("step", EVERY)
@pytest.mark.parametrize("data_format", ["parquet", "hfile"])
def test_cut_contents_of_others_are_refused(data_format: str, step: int) -> None:
    headers, kind, content = unsealed(data_format)
    for cut in range(0, len(content), step):
        (found,) = scan_blocks(block(kind, headers, content[:cut]))
        with pytest.raises(FormatError):
            read(found)


def test_text_of_others_that_is_not_utf8_is_refused() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"s": ["abcdefgh", "zyxwvuts"]}), sink, compression="none", use_dictionary=False)
    content = sink.getvalue().to_pybytes().replace(b"zyxw", b"zy\xff\xfe")
    (found,) = scan_blocks(block(int(BlockType.PARQUET_DATA), {0: "1"}, content))
    with pytest.raises(FormatError, match=r"PARQUET_DATA block at offset 0.*column 's'.*UTF"):
        decode_records(found)


WIDE = pa.schema(
    [
        ("a", pa.int32()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.float64()),
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.string())),
        ("t", pa.struct([("x", pa.date32()), ("y", pa.decimal128(5, 2))])),
        pa.field("z", pa.string(), nullable=False),
    ]
)
FULL = {"a": 1, "s": "x", "b": True, "d": 2.5, "l": [1, 70], "m": [("k", "v")], "t": {"x": None, "y": "1.00"}, "z": "q"}


def outcome(read: Callable[[], pa.Table]) -> Any:
    try:
        return repr(read().to_pylist())
    except FormatError:
        return None


def test_records_of_others_are_decoded_strictly() -> None:
    """Two decoders that accept different nonsense agree, so neither makes anything of nonsense."""
    rows: list[dict[str, Any]] = [FULL | {"t": None}, dict.fromkeys(WIDE.names) | {"z": "", "l": []}]
    table = pa.Table.from_pylist(rows, WIDE)
    schema = to_avro(WIDE, "t")
    content = framed(datums_of(table, schema))
    accepted = 0
    for at in range(len(content)):
        for bit in range(8):
            broken = memoryview(content[:at] + bytes((content[at] ^ 1 << bit,)) + content[at + 1 :])
            fast = outcome(lambda broken=broken: decode_avro(broken, schema))  # type: ignore[misc]
            assert fast == outcome(lambda broken=broken: decode_avro(broken, schema, fast=False)), (at, bit)  # type: ignore[misc]
            accepted += fast is not None
    # only values can change: not the number of rows, not which of them are null
    assert 0 < accepted < 8 * len(content) * 0.6
    for cut in range(len(content)):
        assert outcome(lambda cut=cut: decode_avro(memoryview(content[:cut]), schema)) is None  # type: ignore[misc]


@pytest.mark.parametrize(
    ("deletes", "ordering"),
    [
        ([("k1", "p", wrapped("Long", 300)), ("key-2", "", wrapped("Long", -1))], pa.schema([("o", pa.int64())])),
        ([("k1", "p", wrapped("Int", 0)), ("key-2", "", wrapped("Int", 0))], pa.schema([("o", pa.string())])),
        ([("k1", "p", wrapped("String", "ü")), ("key-2", None, None)], pa.schema([("o", pa.string())])),
        (
            [("k1", "p", several(wrapped("Long", 5), wrapped("String", "m")))],
            pa.schema([("a", pa.int64()), ("b", pa.string())]),
        ),
    ],
)
def test_deletes_of_others_are_decoded_strictly(deletes: list[Any], ordering: pa.Schema) -> None:
    """Keys and values can change where bytes of them do, nothing else can."""
    body = delete_list(*deletes)
    right = decoded(body, ordering)
    for at in range(len(body)):
        for bit in range(8):
            broken = body[:at] + bytes((body[at] ^ 1 << bit,)) + body[at + 1 :]
            with contextlib.suppress(FormatError):
                assert len(decoded(broken, ordering)) == len(right)
    for cut in range(len(body)):
        with pytest.raises(FormatError):
            decoded(body[:cut], ordering)
