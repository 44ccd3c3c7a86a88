"""Consistent hashing: ranges, ids and hashes are what Apache Hudi's own classes give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import ConflictError, FormatError
from pyhudi.format.xxh32 import xxh32
from pyhudi.index.bucket_hash import PARTS
from pyhudi.index.consistent_hashing import (
    FIRST_INSTANT,
    FOLDER,
    HashingMetadata,
    consistent_hashes,
    load_metadata,
    store_first_metadata,
)
from pyhudi.keygen.key_spec import EMPTY_KEY_PART, NULL_KEY_PART
from pyhudi.storage import open_storage

_IDS = [
    "a1ba364b-fbde-3906-b865-53e4c35f3556",
    "29428436-b4af-3680-bc5a-5ac61c04d8f0",
    "28f89699-1b7e-3130-a371-646372cdf972",
    "ddd512a0-10e2-31e7-b326-8550d5f6acf3",
]


def test_a_partition_begins_with_equal_ranges() -> None:
    first = HashingMetadata.first("p0", 4)
    assert first.ends.tolist() == [536870912, 1073741824, 1610612736, 2147483647]
    assert first.prefixes == tuple(_IDS)
    assert first.file_ids()[0] == _IDS[0] + "-0"


def hashed(keys: list[str], fields: list[str], *, legacy_key_split: bool = False) -> list[int]:
    found: list[int] = consistent_hashes(
        pa.array(keys, pa.string()), fields, legacy_key_split=legacy_key_split
    ).tolist()
    return found


def test_the_hash_of_a_key() -> None:
    assert hashed(["k0000", "k0001", "k0002"], ["id"]) == [311984791, 457884671, 1023020662]
    assert hashed(["id:k0001,i:1"], ["id", "i"]) == [684065274]
    assert hashed(["k0001", "id:k0001,i:1"], ["id"]) == [457884671] * 2
    assert hashed([], ["id"]) == []


def one_by_one(key: str, fields: list[str], legacy_key_split: bool) -> int:
    text = key
    if ":" in key and (legacy_key_split or "," in key):
        pairs = [part.partition(":") for part in PARTS.split(key)]
        java = {NULL_KEY_PART: "null", EMPTY_KEY_PART: ""}
        text = "".join(java.get(value, value) for name, _, value in pairs if name in fields)
    return xxhash.xxh32_intdigest(text.encode()) & 0x7FFFFFFF


_KEYS = st.one_of(
    st.text(st.sampled_from("xyz,:\x01\\\n\U0001f600"), max_size=12),
    st.builds("x:{},y:{}".format, st.sampled_from([NULL_KEY_PART, EMPTY_KEY_PART, "é"]), st.text(max_size=40)),
)


@given(keys=st.lists(_KEYS, max_size=8), legacy_key_split=st.booleans(), sliced=st.booleans())
def test_whole_columns_of_keys(keys: list[str], legacy_key_split: bool, sliced: bool) -> None:
    column = pa.array(["x:1,y:2", *keys], pa.string()).slice(1) if sliced else pa.array(keys, pa.string())
    found = consistent_hashes(column, ["x", ""], legacy_key_split=legacy_key_split)
    assert found.tolist() == [one_by_one(key, ["x", ""], legacy_key_split) for key in keys]


@given(st.lists(st.text(max_size=70), max_size=8))
def test_xxhash_of_whole_columns(texts: list[str]) -> None:
    assert xxh32(pa.array(texts, pa.string())).tolist() == [xxhash.xxh32_intdigest(t.encode()) for t in texts]


def test_a_hash_belongs_to_the_first_range_that_ends_behind_it() -> None:
    first = HashingMetadata.first("p0", 3)
    ends = first.ends
    assert first.buckets_of(np.array([0, ends[0], ends[0] + 1, ends[1], 2147483647])).tolist() == [0, 0, 1, 1, 2]
    assert HashingMetadata("p", "1", ends[:2], first.prefixes[:2]).buckets_of(ends[2:]).tolist() == [0]


def test_files_are_written_as_apache_hudi_writes_them() -> None:
    text = HashingMetadata.first("p0", 4).encode().decode()
    assert text.startswith('{\n  "version" : 0,\n  "partitionPath" : "p0",\n  "instant" : "00000000000000",\n')
    assert '"nodes" : [ {\n    "value" : 536870912,\n    "fileIdPrefix" : "a1ba364b' in text
    assert len(text) == 587
    assert json.loads(text)["numBuckets"] == 4


def test_the_newest_file_of_a_completed_instant_counts(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path))
    first = HashingMetadata.first("a/b", 2)
    store_first_metadata(storage, {"a/b": first})
    store_first_metadata(storage, {"a/b": first})  # another writer was faster
    with pytest.raises(ConflictError, match=r"'a/b' with 2 buckets, and this one with 8: .*num\.buckets"):
        store_first_metadata(storage, {"a/b": HashingMetadata.first("a/b", 8)})
    halves = HashingMetadata("a/b", "20260101000000000", first.ends[1:], first.prefixes[1:])
    storage.write(f"{FOLDER}/a/b/20260101000000000.hashing_meta", halves.encode())
    assert load_metadata(storage, ["a/b", "c"], [])["a/b"].instant == FIRST_INSTANT
    assert load_metadata(storage, ["a/b"], ["20260101000000000"])["a/b"].prefixes == first.prefixes[1:]
    storage.write(f"{FOLDER}/a/b/20260101000000000.commit", b"")
    assert load_metadata(storage, ["a/b"], [])["a/b"].prefixes == first.prefixes[1:]
    storage.write(f"{FOLDER}/c/00000000000000.hashing_meta", b'{"nodes": []}')
    with pytest.raises(FormatError, match="buckets"):
        load_metadata(storage, ["c"], [])
