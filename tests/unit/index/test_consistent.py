"""Consistent hashing: ranges, ids and hashes are what Apache Hudi's own classes give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pyhudi.errors import FormatError
from pyhudi.index.consistent import (
    FIRST_INSTANT,
    FOLDER,
    HashingMetadata,
    hashes_of,
    load_metadata,
    store_first,
)
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


def test_the_hash_of_a_key() -> None:
    assert hashes_of(["k0000", "k0001", "k0002"], ["id"]).tolist() == [311984791, 457884671, 1023020662]
    assert hashes_of(["id:k0001,i:1"], ["id", "i"]).tolist() == [684065274]
    assert hashes_of(["k0001", "id:k0001,i:1"], ["id"]).tolist() == [457884671] * 2


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
    store_first(storage, {"a/b": first})
    store_first(storage, {"a/b": HashingMetadata.first("a/b", 8)})  # another writer was faster
    halves = HashingMetadata("a/b", "20260101000000000", first.ends[1:], first.prefixes[1:])
    storage.write(f"{FOLDER}/a/b/20260101000000000.hashing_meta", halves.encode())
    assert load_metadata(storage, ["a/b", "c"], [])["a/b"].instant == FIRST_INSTANT
    assert load_metadata(storage, ["a/b"], ["20260101000000000"])["a/b"].prefixes == first.prefixes[1:]
    storage.write(f"{FOLDER}/a/b/20260101000000000.commit", b"")
    assert load_metadata(storage, ["a/b"], [])["a/b"].prefixes == first.prefixes[1:]
    storage.write(f"{FOLDER}/c/00000000000000.hashing_meta", b'{"nodes": []}')
    with pytest.raises(FormatError, match="buckets"):
        load_metadata(storage, ["c"], [])
