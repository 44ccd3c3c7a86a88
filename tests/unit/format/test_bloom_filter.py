"""Bloom filters and the hash under them, bit for bit."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.base_file import parquet
from pyhudi.format.bloom_filter import DYNAMIC, SIMPLE, BloomBuilder, BloomFilter
from pyhudi.format.murmur2 import hash_block, key_blocks
from tests.unit.format import golden

DATA = Path(__file__).parent / "data"
M = 0x5BD1E995


def murmur2(keys: pa.Array | pa.ChunkedArray, seed: int) -> np.ndarray:
    """The hash of every key as Java's signed int."""
    out = np.empty(len(keys), np.uint32)
    for block in key_blocks(keys):
        h = np.full(len(block), seed & 0xFFFFFFFF, np.uint32)
        hash_block(block, h, np.empty_like(h))
        out[block.index] = h
    return out.view(np.int32)


def plain_murmur(key: bytes, seed: int) -> int:
    """The hash, a byte at a time; the tail is sign-extended."""
    h = (seed ^ len(key)) & 0xFFFFFFFF
    for i in range(0, len(key) // 4 * 4, 4):
        k = int.from_bytes(key[i : i + 4], "little") * M & 0xFFFFFFFF
        k = (k ^ (k >> 24)) * M & 0xFFFFFFFF
        h = (h * M & 0xFFFFFFFF) ^ k
    left = len(key) % 4
    if left:
        for back in range(left, 0, -1):
            byte = key[len(key) - back]
            h ^= ((byte - 256 if byte > 127 else byte) << (8 * (back - 1))) & 0xFFFFFFFF
        h = h * M & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * M & 0xFFFFFFFF
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


@given(st.lists(st.binary(max_size=45), min_size=1, max_size=30), st.integers(-(2**31), 2**31 - 1))
def test_murmur_equals_the_plain_form(keys: list[bytes], seed: int) -> None:
    assert murmur2(pa.array(keys, pa.binary()), seed).tolist() == [plain_murmur(key, seed) for key in keys]


def test_murmur_of_many_keys_in_slices_and_chunks() -> None:
    keys = [f"l_orderkey:{i * 7919 % 100_003},é{'x' * (i % 13)}" for i in range(20_000)]
    expected = [plain_murmur(key.encode(), 5) for key in keys[3:]]
    array = pa.array(keys)
    assert murmur2(array.slice(3), 5).tolist() == expected
    assert murmur2(pa.chunked_array([array[3:50], array[50:50], array[50:]]), 5).tolist() == expected
    assert murmur2(array.slice(3).cast(pa.large_string()), 5).tolist() == expected


def plain_positions(key: bytes, bits: int, hashes: int) -> list[int]:
    h, found = 0, []
    for _ in range(hashes):
        h = plain_murmur(key, h)
        found.append(abs(h) % bits)
    return found


@given(st.lists(st.text(min_size=1, max_size=20), max_size=40), st.integers(1, 9), st.integers(1, 30))
def test_dynamic_filter_equals_the_plain_form(keys: list[str], per_row: int, limit: int) -> None:
    built = BloomFilter.build(pa.array(keys, pa.string()), per_row, 0.01, limit)
    rows = [np.zeros(built.bits, np.bool_)]
    last, turn, full = 0, 0, False
    for key in keys:
        if not full and last >= per_row:
            if len(rows) * per_row < limit:
                rows.append(np.zeros(built.bits, np.bool_))
                last = 0
                row = rows[-1]
            else:
                full, row = True, rows[0]
        elif full:
            row = rows[turn % len(rows)]
            turn += 1
        else:
            row = rows[-1]
        row[plain_positions(key.encode(), built.bits, built.hashes)] = True
        last += 1
    assert [r.tolist() for r in built.rows] == [np.packbits(r, bitorder="little").tolist() for r in rows]
    assert built.last_row_count == last


@pytest.mark.parametrize("row", list(csv.DictReader((DATA / "blooms.tsv").open(), delimiter="\t")), ids=str)
def test_equals_filters_made_by_apache_hudi(row: dict[str, str]) -> None:
    keys = pa.array([f"key-{i * 7919 % 100_003}é{i}" for i in range(int(row["keys"]))])
    entries, limit = int(row["entries"]), int(row["max_entries"])
    text = BloomFilter.build(keys, entries, float(row["fpp"]), limit, row["kind"]).serialize()
    assert hashlib.sha256(text.encode()).hexdigest() == row["sha256"]


@pytest.mark.parametrize("table", golden.names())
def test_rebuilds_the_filters_of_golden_files(table: str) -> None:
    for name, data in golden.base_files(table):
        footer = parquet.read_footer(pa.BufferReader(data))
        if footer.bloom_text is None:
            continue
        found = footer.bloom_filter()
        assert found is not None
        keys = parquet.open_file(pa.BufferReader(data)).read(["_hoodie_record_key"])[0]
        assert BloomFilter.build(keys, found.entries_per_row).serialize().encode() == footer.bloom_text, name
        assert found.serialize().encode() == footer.bloom_text
        assert found.might_contain(keys).true_count == len(keys)


@given(st.lists(st.integers(0, 400), max_size=6))
def test_batches_do_not_matter(cuts: list[int]) -> None:
    keys = pa.array([f"k{i}" for i in range(400)])
    builder = BloomBuilder(90, 1e-3, 200)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), 400], strict=True):
        builder.add(keys[start:end])
    assert builder.finish().serialize() == BloomFilter.build(keys, 90, 1e-3, 200).serialize()


@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_holds_all_keys_and_few_others(kind: str) -> None:
    keys = pa.array([f"key-{i}" for i in range(5_000)])
    others = pa.array([f"other-{i}" for i in range(20_000)])
    bloom = BloomFilter.parse(BloomFilter.build(keys, 3_000, 1e-4, 6_000, kind).serialize(), kind)
    assert bloom.might_contain(keys).true_count == 5_000
    assert bloom.might_contain(others).true_count < 300


@given(st.lists(st.text(max_size=12), max_size=50), st.lists(st.text(max_size=12), max_size=50))
def test_probing_equals_the_plain_form(keys: list[str], asked: list[str]) -> None:
    bloom = BloomFilter.build(pa.array(keys, pa.string()), 10, 0.3, 30)
    expected = [
        any(
            all(row[p // 8] >> (p % 8) & 1 for p in plain_positions(k.encode(), bloom.bits, bloom.hashes))
            for row in bloom.rows
        )
        for k in asked
    ]
    assert bloom.might_contain(pa.array(asked, pa.string())).to_pylist() == expected


def test_null_keys() -> None:
    bloom = BloomFilter.build(pa.array(["a"]))
    assert bloom.might_contain(pa.array(["a", None, "b"])).to_pylist() == [True, None, False]
    assert bloom.might_contain(pa.chunked_array([["b"], ["a"]])).to_pylist() == [False, True]
    with pytest.raises(ValueError, match="1 of 2 record keys are null"):
        BloomFilter.build(pa.array(["a", None]))


def test_parse_refuses_what_is_no_filter() -> None:
    text = BloomFilter.build(pa.array(["a"]), 10).serialize()
    with pytest.raises(FormatError, match="unknown bloom filter type"):
        BloomFilter.parse(text, "CUCKOO")
    with pytest.raises(FormatError, match="not valid base64"):
        BloomFilter.parse(text[:-1] + "%", DYNAMIC)
    with pytest.raises(FormatError):
        BloomFilter.parse(text, SIMPLE)
    for end in range(0, len(text), 4):
        with pytest.raises(FormatError):
            BloomFilter.parse(text[:end], DYNAMIC)


@given(
    st.lists(st.text(min_size=1, max_size=20), max_size=40),
    st.lists(st.text(min_size=1, max_size=20), max_size=40),
    st.integers(1, 9),
    st.integers(1, 30),
)
def test_going_on_with_a_filter_is_building_it_at_once(
    old: list[str], new: list[str], per_row: int, limit: int
) -> None:
    earlier = BloomFilter.parse(
        BloomFilter.build(pa.array(old, pa.string()), per_row, 0.01, limit).serialize(), DYNAMIC
    )
    builder = BloomBuilder(per_row, 0.01, limit)
    assert builder.resume(earlier, len(old))
    builder.add(pa.array(new, pa.string()))
    whole = BloomFilter.build(pa.array(old + new, pa.string()), per_row, 0.01, limit)
    assert builder.finish().serialize() == whole.serialize()


def test_filters_that_are_not_gone_on_with() -> None:
    keys = pa.array([f"k{i}" for i in range(100)])
    earlier = BloomFilter.build(keys, 60, 0.01, 200)
    assert not BloomBuilder(60, 0.001, 200).resume(earlier, 100), "another size"
    assert not BloomBuilder(60, 0.01, 60).resume(earlier, 100), "more rows than allowed now"
    assert not BloomBuilder(60, 0.01, 200).resume(earlier, 90), "a tenth of its keys were deleted"
    assert not BloomBuilder(60, 0.01, 200).resume(earlier, 120), "it does not know all keys"
    simple = BloomFilter.build(keys, 60, 0.01, 200, SIMPLE)
    assert not BloomBuilder(60, 0.01, 200, SIMPLE).resume(simple, 100), "it does not count its keys"
