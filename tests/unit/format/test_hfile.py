"""HFiles of the golden tables' metadata tables: base files, and the content of log blocks."""

from __future__ import annotations

import functools
import zlib

import pyarrow as pa
import pytest

from pyhudi.errors import FormatError
from pyhudi.format import hfileblocks
from pyhudi.format.hfile import ENTRY_SCHEMA, HFileReader
from pyhudi.format.log import BlockType, scan_blocks
from tests.unit.format import golden
from tests.unit.format.log.samples import golden_log_files


@functools.cache
def hfiles(table: str) -> tuple[bytes, ...]:
    files = [data for name, data in golden.files(table, metadata_table=True) if name.endswith(".hfile")]
    blocks = [block for _, data in golden_log_files(table) for block in scan_blocks(data)]
    return (*files, *(bytes(block.content()) for block in blocks if block.type is BlockType.HFILE_DATA))


def entries(reader: HFileReader) -> pa.Table:
    return pa.Table.from_batches(reader.batches(), ENTRY_SCHEMA)


@pytest.mark.parametrize("table", [name for name in golden.names() if hfiles(name)])
def test_golden_files(table: str) -> None:
    for data in hfiles(table):
        reader = HFileReader(data)
        keys = entries(reader)["key"].to_pylist()
        assert len(keys) == reader.num_entries
        assert keys == sorted(set(keys))
        assert reader.last_key == (keys[-1] if keys else None)
        assert reader.schema is not None
        assert '"HoodieMetadataRecord"' in reader.schema
        assert reader.comparator == "org.apache.hudi.io.storage.HoodieHBaseKVComparator"
        bloom = reader.meta_block("bloomFilter")
        assert (bloom is None) == ("bloomFilterTypeCode" not in reader.file_info)
        assert reader.meta_block("nothing") is None


@pytest.mark.parametrize("table", [name for name in golden.names() if hfiles(name)])
def test_lookups(table: str) -> None:
    for data in hfiles(table):
        reader = HFileReader(data)
        every = entries(reader)
        keys = every["key"].to_pylist()
        some = [key.decode() for key in keys[::3]]
        found = reader.lookup(pa.array([*some, "", "zzzz", "not there", *some], pa.string()))
        assert found["key"].to_pylist() == keys[::3]
        assert reader.lookup(pa.array([], pa.string())).num_rows == 0
        for prefix in {b"", *(key[:n] for key in keys[:5] for n in (1, 5, 100))}:
            assert reader.prefix(prefix)["key"].to_pylist() == [key for key in keys if key.startswith(prefix)]


def small() -> bytes:
    return min((data for name in golden.names() for data in hfiles(name) if HFileReader(data).num_entries), key=len)


def test_damaged_files_give_no_wrong_entry() -> None:
    """Gzip checks its payloads; what is outside of them is headers, the trailer, and checksums that nobody reads."""
    data = small()
    right = entries(HFileReader(data))
    places = [*range(len(data) - hfileblocks.TRAILER_SIZE + 100), *range(len(data) - 8, len(data))]
    for at in places:
        for broken in (data[:at], data[:at] + bytes((data[at] ^ 1 << at % 8,)) + data[at + 1 :]):
            try:
                reader = HFileReader(broken)
                assert entries(reader).equals(right)
                reader.lookup(right["key"])
            except FormatError:
                continue


def test_what_is_no_hfile_is_refused() -> None:
    for data in (b"", b"PAR1", bytes(5000)):
        with pytest.raises(FormatError, match="not an HFile"):
            HFileReader(data)


def block(payload: bytes, *, codec: hfileblocks.Codec, checksum: int = 0) -> bytes:
    packed = payload
    if codec is hfileblocks.Codec.GZIP:
        deflate = zlib.compressobj(wbits=31)
        packed = deflate.compress(payload) + deflate.flush()
    header = hfileblocks.BLOCK_HEADER.pack(
        b"DATABLK*", len(packed) + 4, len(payload), -1, checksum, 1 << 30, 33 + len(packed)
    )
    total = zlib.crc32(header + packed) if checksum == hfileblocks.CHECKSUM_CRC32 else 0
    return header + packed + total.to_bytes(4, "big")


@pytest.mark.parametrize("codec", list(hfileblocks.Codec))
def test_blocks(codec: hfileblocks.Codec) -> None:
    payload = b"payload " * 100
    whole = block(payload, codec=codec, checksum=hfileblocks.CHECKSUM_CRC32)
    magics = (b"DATABLK*",)
    assert hfileblocks.read_block(memoryview(whole + b"more"), magics, codec) == (payload, len(whole))
    for at in range(len(whole)):
        broken = whole[:at] + bytes((whole[at] ^ 0x10,)) + whole[at + 1 :]
        try:
            # the checksum covers everything but its own type
            assert hfileblocks.read_block(memoryview(broken), magics, codec) == (payload, len(whole))
        except FormatError:
            continue


def test_a_block_that_claims_too_much_is_refused_before_memory_is_taken() -> None:
    packed = zlib.compressobj(9, wbits=31)
    bomb = packed.compress(bytes(50_000_000)) + packed.flush()
    with pytest.raises(FormatError):
        hfileblocks.decompress(memoryview(bomb), 1000, hfileblocks.Codec.GZIP)
    with pytest.raises(FormatError, match="cannot hold"):
        hfileblocks.decompress(memoryview(bomb), 1 << 31, hfileblocks.Codec.GZIP)


@pytest.mark.parametrize("value", [0, 5, 127, -112, 128, 255, 256, 65535, 65536, 1 << 31, -113, -256, -70000])
def test_hadoop_numbers(value: int) -> None:
    if -112 <= value <= 127:
        raw = bytes((value & 0xFF,))
    else:
        magnitude = value if value >= 0 else ~value
        size = (magnitude.bit_length() + 7) // 8
        raw = bytes(((-112 if value >= 0 else -120) - size & 0xFF,)) + magnitude.to_bytes(size, "big")
    assert hfileblocks.hadoop_varint(raw + b"x", 0) == (value, len(raw))
