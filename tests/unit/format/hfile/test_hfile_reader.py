"""HFiles of the golden tables' metadata tables: base files, and the content of log blocks."""

from __future__ import annotations

import bz2
import functools
import itertools
import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.hfile import block_codecs, hfile_blocks, hfile_writer
from pyhudi.format.hfile.block_codecs import Codec
from pyhudi.format.hfile.block_index import index_entries, root_entries
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.format.hfile.hfile_writer import HFileContext, HFileWriter, write_hfile
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA
from pyhudi.format.log import BlockType, scan_blocks
from pyhudi.format.varint import unsigned
from pyhudi.storage.byte_bounded_cache import ByteBoundedCache
from tests.unit.format import golden
from tests.unit.format.log.samples import golden_log_files

WRITTEN = (Codec.GZIP, Codec.NONE)
"""Codecs that pyhudi writes; all releases of Apache Hudi read them."""


@functools.cache
def hfiles(table: str) -> tuple[bytes, ...]:
    files = [data for name, data in golden.files(table, metadata_table=True) if name.endswith(".hfile")]
    blocks = [block for _, data in golden_log_files(table) for block in scan_blocks(data)]
    return (*files, *(bytes(block.content()) for block in blocks if block.type is BlockType.HFILE_DATA))


def meta_blocks(data: bytes) -> list[bytes]:
    """Names of the meta blocks, which pyhudi neither reads nor writes."""
    trailer = hfile_blocks.parse_trailer(memoryview(data)[-hfile_blocks.TRAILER_SIZE :])
    opened, magic = memoryview(data)[trailer.load_on_open_offset :], (hfile_blocks.ROOT_INDEX_MAGIC,)
    _, size = hfile_blocks.read_block(opened, magic, trailer.codec)
    index, _ = hfile_blocks.read_block(opened[size:], magic, trailer.codec)
    return [entry.key for entry in index_entries(index, trailer.meta_index_count, trailer.load_on_open_offset)]


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
        assert (b"bloomFilter" in meta_blocks(data)) == ("bloomFilterTypeCode" in reader.file_info)


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
    places = [*range(len(data) - hfile_blocks.TRAILER_SIZE + 100), *range(len(data) - 8, len(data))]
    for at in places:
        for broken in (data[:at], data[:at] + bytes((data[at] ^ 1 << at % 8,)) + data[at + 1 :]):
            for read in (entries, lambda reader: reader.lookup(right["key"]), lambda reader: reader.prefix(b"")):
                try:
                    assert read(HFileReader(broken)).combine_chunks().equals(right.combine_chunks()), at
                except FormatError:
                    continue


def test_what_is_no_hfile_is_refused() -> None:
    for data in (b"", b"PAR1", bytes(5000)):
        with pytest.raises(FormatError, match="not an HFile"):
            HFileReader(data)


def block(payload: bytes, *, codec: Codec, checksum: int = 0, magic: bytes = b"DATABLK*") -> bytes:
    packed = payload
    if codec is Codec.GZIP:
        deflate = zlib.compressobj(wbits=31)
        packed = deflate.compress(payload) + deflate.flush()
    header = hfile_blocks.BLOCK_HEADER.pack(
        magic, len(packed) + 4, len(payload), -1, checksum, 1 << 30, 33 + len(packed)
    )
    total = zlib.crc32(header + packed) if checksum == hfile_blocks.CHECKSUM_CRC32 else 0
    return header + packed + total.to_bytes(4, "big")


@pytest.mark.parametrize("codec", WRITTEN)
def test_blocks(codec: Codec) -> None:
    payload = b"payload " * 100
    whole = block(payload, codec=codec, checksum=hfile_blocks.CHECKSUM_CRC32)
    magics = (b"DATABLK*",)
    assert hfile_blocks.read_block(memoryview(whole + b"more"), magics, codec) == (payload, len(whole))
    for at in range(len(whole)):
        broken = whole[:at] + bytes((whole[at] ^ 0x10,)) + whole[at + 1 :]
        try:
            # the checksum covers everything but its own type
            assert hfile_blocks.read_block(memoryview(broken), magics, codec) == (payload, len(whole))
        except FormatError:
            continue


def test_a_block_that_claims_too_much_is_refused_before_memory_is_taken() -> None:
    packed = zlib.compressobj(9, wbits=31)
    bomb = packed.compress(bytes(50_000_000)) + packed.flush()
    with pytest.raises(FormatError):
        block_codecs.decompress(memoryview(bomb), 1000, Codec.GZIP)
    with pytest.raises(FormatError, match="cannot decompress"):
        block_codecs.decompress(memoryview(bomb), 1 << 31, Codec.GZIP)


KEYS = st.dictionaries(st.binary(max_size=300), st.binary(max_size=2000), max_size=60)


def columns(entries: dict[bytes, bytes]) -> tuple[pa.Array, pa.Array]:
    keys = sorted(entries)
    return pa.array(keys, pa.binary()), pa.array([entries[key] for key in keys], pa.binary())


@settings(deadline=None)
@given(KEYS, st.sampled_from([1, 300, 65536]), st.sampled_from(WRITTEN))
def test_round_trip(pairs: dict[bytes, bytes], block_size: int, codec: Codec) -> None:
    keys, values = columns(pairs)
    info = {"minRecordKey": b"x"}
    data = write_hfile(keys, values, schema="{}", info=info, context=HFileContext(codec=codec, block_size=block_size))
    reader = HFileReader(data)
    assert entries(reader).equals(pa.Table.from_arrays([keys, values], schema=ENTRY_SCHEMA))
    assert reader.num_entries == len(pairs)
    assert reader.last_key == (max(pairs) if pairs else None)
    assert reader.schema == "{}"
    assert reader.file_info["minRecordKey"] == b"x"
    assert meta_blocks(data) == []
    half = sorted(pairs)[::2]
    found = reader.lookup(pa.array([*half, b"never" * 70], pa.binary()))
    assert found.to_pylist() == [{"key": key, "value": pairs[key]} for key in half]
    if pairs:
        prefix = max(pairs)[:1]
        assert reader.prefix(prefix)["key"].to_pylist() == [key for key in sorted(pairs) if key.startswith(prefix)]


def test_entries_that_come_some_at_a_time() -> None:
    keys = pa.array([f"k{i:03d}" for i in range(100)])
    values = pa.array([b"v" * i for i in range(100)])
    parts: list[bytes] = []
    writer = HFileWriter(parts.append, schema='"string"', context=HFileContext(block_size=300))
    for start, end in ((0, 0), (0, 1), (1, 70), (70, 70), (70, 100)):
        writer.add(keys[start:end], values[start:end])
    with pytest.raises(FormatError, match="ascending byte order"):
        writer.add(keys[99:], values[99:])
    writer.finish()
    data = b"".join(parts)
    assert (writer.count, writer.size) == (100, len(data))
    found = entries(HFileReader(data))
    assert found["key"].to_pylist() == [key.encode() for key in keys.to_pylist()]
    assert found["value"].to_pylist() == values.to_pylist()
    assert HFileReader(data).lookup(pa.array(["k000", "k070", "k099"])).num_rows == 3


def test_entries_of_one_size() -> None:
    """The record index has such: they are found without a walk from one to the next."""
    pairs = {f"key-{i:08}".encode(): bytes(20) for i in range(20_000)}
    data = write_hfile(*columns(pairs), schema="{}")
    reader = HFileReader(data)
    assert len(reader.index) > 5
    assert entries(reader)["key"].to_pylist() == sorted(pairs)
    assert reader.lookup(pa.array(["key-00012345"]))["value"].to_pylist() == [bytes(20)]


@pytest.mark.parametrize(
    "keys", [[b"b", b"a"], [b"a", b"a"], [None, b"a"], [b"x" * 40_000, b"y"]], ids=["order", "twice", "null", "long"]
)
def test_keys_that_cannot_be_written(keys: list[bytes | None]) -> None:
    with pytest.raises(FormatError):
        write_hfile(pa.array(keys, pa.binary()), pa.array([b""] * 2, pa.binary()), schema="{}")


def test_an_index_of_several_levels() -> None:
    """HBase makes one when there are many blocks: the root names index blocks, those the data blocks."""
    pairs = {f"{i:05}".encode(): b"v" * 50 for i in range(400)}
    data = write_hfile(*columns(pairs), schema="{}", context=HFileContext(codec=Codec.NONE, block_size=300))
    trailer = hfile_blocks.parse_trailer(memoryview(data)[-hfile_blocks.TRAILER_SIZE :])
    index = HFileReader(data).index
    parts = [data[: trailer.load_on_open_offset]]
    root = []
    for start in range(0, len(index), 7):
        leaves = index[start : start + 7]
        bodies = [struct.pack(">qi", e.offset, e.size) + hfile_blocks.full_key(e.key) for e in leaves]
        places = [0, *itertools.accumulate(len(body) for body in bodies)]
        payload = struct.pack(f">{len(places) + 1}i", len(leaves), *places) + b"".join(bodies)
        leaf = block(payload, codec=Codec.NONE, magic=hfile_blocks.LEAF_INDEX_MAGIC)
        root.append((leaves[0].key, sum(map(len, parts)), len(leaf)))
        parts.append(leaf)
    load_on_open = sum(map(len, parts))
    body = b"".join(
        struct.pack(">qi", offset, size) + hfile_blocks.hadoop_number(len(key) + 12) + hfile_blocks.full_key(key)
        for key, offset, size in root
    )
    # what HBase says of the middle of the index stands behind the entries
    parts.append(block(body + bytes(16), codec=Codec.NONE, magic=hfile_blocks.ROOT_INDEX_MAGIC))
    rest = data[trailer.load_on_open_offset : -hfile_blocks.TRAILER_SIZE]
    _, at = hfile_blocks.read_block(memoryview(rest), (hfile_blocks.ROOT_INDEX_MAGIC,), Codec.NONE)
    info_offset = load_on_open + len(parts[-1]) + trailer.file_info_offset - trailer.load_on_open_offset - at
    parts.append(rest[at:])
    numbers = {1: info_offset, 2: load_on_open, 5: len(root), 6: 0, 7: 400, 8: 2, 12: 2}
    message = b"".join(unsigned(n << 3) + unsigned(v) for n, v in numbers.items())
    end = hfile_blocks.TRAILER_MAGIC + unsigned(len(message)) + message
    parts.append(end.ljust(hfile_blocks.TRAILER_SIZE - 4, b"\0") + b"\3\0\0\3")
    reader = HFileReader(b"".join(parts))
    assert reader.index == index
    assert entries(reader)["key"].to_pylist() == sorted(pairs)
    assert reader.lookup(pa.array(["00077", "00399", "x"]))["key"].to_pylist() == [b"00077", b"00399"]


@pytest.mark.parametrize("value", [0, 5, 127, -112, 128, 255, 256, 65535, 65536, 1 << 31, -113, -256, -70000])
def test_hadoop_numbers(value: int) -> None:
    if -112 <= value <= 127:
        raw = bytes((value & 0xFF,))
    else:
        magnitude = value if value >= 0 else ~value
        size = (magnitude.bit_length() + 7) // 8
        raw = bytes(((-112 if value >= 0 else -120) - size & 0xFF,)) + magnitude.to_bytes(size, "big")
    assert hfile_blocks.hadoop_varint(raw + b"x", 0) == (value, len(raw))
    if value >= 0:
        assert hfile_blocks.hadoop_number(value) == raw


def framed(name: str, payload: bytes, pieces: int) -> bytes:
    """As Hadoop's block streams have it: the plain size, then compressed pieces with their sizes."""
    codec, step = pa.Codec(name), -(-len(payload) // pieces)
    packed = [codec.compress(payload[at : at + step], asbytes=True) for at in range(0, len(payload), step)]
    return struct.pack(">I", len(payload)) + b"".join(struct.pack(">I", len(piece)) + piece for piece in packed)


COMPRESSED = {
    Codec.SNAPPY: lambda payload: framed("snappy", payload, 1),
    Codec.LZ4: lambda payload: framed("lz4_raw", payload, 3),
    Codec.BZIP2: bz2.compress,
    Codec.ZSTD: lambda payload: pa.Codec("zstd").compress(payload, asbytes=True),
}


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("payload", [b"payload " * 500, bytes(range(256)) * 3, b"x", bytes(100_000)])
def test_codecs_that_are_only_read(codec: Codec, payload: bytes) -> None:
    packed = COMPRESSED[codec](payload)
    assert block_codecs.decompress(memoryview(packed), len(payload), codec) == payload
    for size in (-1, len(payload) - 1, len(payload) + 1, 1 << 33):
        with pytest.raises(FormatError):
            block_codecs.decompress(memoryview(packed), size, codec)
    for at in range(min(len(packed), 300)):
        for damaged in (packed[:at], packed[:at] + bytes((packed[at] ^ 0x10,)) + packed[at + 1 :]):
            try:
                found = block_codecs.decompress(memoryview(damaged), len(payload), codec)
            except FormatError:
                continue
            assert len(found) == len(payload)


def test_frames_of_several_blocks() -> None:
    packed = framed("snappy", b"a" * 70, 2) + framed("snappy", b"b" * 30, 1)
    assert block_codecs.decompress(memoryview(packed), 100, Codec.SNAPPY) == b"a" * 70 + b"b" * 30


def test_a_codec_without_a_library() -> None:
    with pytest.raises(FormatError, match=r"cannot read HFile blocks compressed with LZO.*algorithm=GZ"):
        block_codecs.decompress(memoryview(b"1234"), 4, Codec.LZO)


@pytest.mark.parametrize("count", [10, 4000])
def test_blocks_in_a_cache(count: int) -> None:
    """Few blocks are kept, one by one; however they are read, the entries are the same."""
    pairs = {f"k{n:05d}".encode(): bytes(n % 50) for n in range(count)}
    keys, values = columns(pairs)
    data = write_hfile(keys, values, schema="{}", context=HFileContext(block_size=300))
    cache = ByteBoundedCache()
    cached, plain = HFileReader(data, cache=cache, name="a"), HFileReader(data)
    for _ in range(2):
        for some in (keys[::7], keys, pa.array([b"k00003", b"", b"z"])):
            assert cached.lookup(some).combine_chunks() == plain.lookup(some).combine_chunks()
        for prefixes in ([b"k0000"], [b"k"], [b"k00001", b"k0000", b"k01"], [b"z"]):
            assert cached.prefixes(prefixes).combine_chunks() == plain.prefixes(prefixes).combine_chunks()
        every = pa.Table.from_batches(cached.batches(), ENTRY_SCHEMA).combine_chunks()
        assert every == pa.table([keys, values], schema=ENTRY_SCHEMA)
    assert 0 < cache.size < 10 * len(data) + 10_000


@pytest.mark.parametrize("codec", WRITTEN)
def test_every_byte_of_several_blocks(codec: Codec) -> None:
    """A changed byte never makes other entries, also where blocks are read together."""
    keys, values = columns({f"k{n:02d}".encode(): b"v" * (n % 7) for n in range(40)})
    data = write_hfile(keys, values, schema="{}", context=HFileContext(codec=codec, block_size=200))
    whole = pa.table([keys, values], schema=ENTRY_SCHEMA)
    for at in [*range(len(data) - 4096 + 120), *range(len(data) - 8, len(data))]:
        for change in (0x01, 0x80, 0xFF):
            broken = bytearray(data)
            broken[at] ^= change
            for read in (
                lambda reader: pa.Table.from_batches(reader.batches(), ENTRY_SCHEMA),
                lambda reader: reader.lookup(keys),
                lambda reader: reader.prefix(b"k"),
            ):
                try:
                    found = read(HFileReader(bytes(broken)))
                except FormatError:
                    continue
                assert found.combine_chunks() == whole, (at, change)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.NONE])
def test_no_bit_of_the_trailer_hides_entries(codec: Codec) -> None:
    """Nothing checks the trailer, which says how many blocks there are."""
    keys = pa.array([f"k{i:04d}" for i in range(60)])
    data = write_hfile(keys, keys.cast(pa.binary()), schema='"int"', context=HFileContext(codec=codec, block_size=300))
    start = len(data) - hfile_blocks.TRAILER_SIZE
    for at in (*range(start, start + 140), *range(len(data) - 8, len(data))):
        for bit in range(8):
            broken = data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]
            try:
                found = HFileReader(broken).lookup(keys)
            except FormatError:
                continue
            assert found["key"].to_pylist() == found["value"].to_pylist() == keys.cast(pa.binary()).to_pylist()


def test_an_index_without_the_last_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last key that the file has by its own account is in no block that the index names."""
    keys = pa.array([f"k{i:04d}" for i in range(60)])
    data = write_hfile(
        keys, keys.cast(pa.binary()), schema='"int"', context=HFileContext(codec=Codec.NONE, block_size=300)
    )
    last = hfile_blocks.full_key(b"k0059")
    at = data.rfind(last)
    broken = data[:at] + hfile_blocks.full_key(b"k0060") + data[at + len(last) :]
    monkeypatch.setattr(hfile_blocks, "verify_checksums", lambda *_: None)
    assert HFileReader(broken).lookup(keys[:5]).num_rows == 5
    for read in (entries, lambda reader: reader.lookup(pa.array(["k0060"])), lambda reader: reader.prefix(b"k006")):
        with pytest.raises(FormatError, match="last key"):
            read(HFileReader(broken, cache=ByteBoundedCache(), name="a"))
    # what HBase says of the middle of a large index looks like one more entry of a small one
    entry = struct.pack(">qi", 0, 0) + hfile_blocks.hadoop_number(3) + struct.pack(">H", 1) + b"a"
    assert len(root_entries(entry * 2, 2, 0)) == len(root_entries(entry * 2, 1, 0, levels=2)) + 1 == 2
    with pytest.raises(FormatError, match="trailing bytes"):
        root_entries(entry * 2, 1, 0)


def test_a_key_is_not_missed_in_a_file_in_the_order_of_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hfile_writer, "check_entries", lambda *_: None)
    groups = (["a", "b", "😀"], ["\uff21", "\uff22"])
    parts: list[bytes] = []
    writer = HFileWriter(parts.append, schema="{}")
    for keys in groups:
        writer.add(pa.array(keys), pa.array([b"v"] * len(keys)))
    writer.finish()
    reader = HFileReader(b"".join(parts))
    assert len(reader.index) == 2
    with pytest.raises(FormatError, match="not in order"):
        reader.lookup(pa.array(["😀"]))
    for key in ("a", "b", "\uff21", "\uff22"):
        assert reader.lookup(pa.array([key])).num_rows == 1
    monkeypatch.undo()
    sorted_keys = ["a", "\uff21", "\uff22", "😀"]
    reader = HFileReader(
        write_hfile(pa.array(sorted_keys), pa.array([b"v"] * 4), schema="{}", context=HFileContext(block_size=40))
    )
    assert len(reader.index) > 1
    assert reader.lookup(pa.array(sorted_keys))["key"].to_pylist() == [key.encode() for key in sorted_keys]
    assert [reader.lookup(pa.array([key])).num_rows for key in (*sorted_keys, "\ue000", "😁")] == [1, 1, 1, 1, 0, 0]
