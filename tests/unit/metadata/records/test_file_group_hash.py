"""Hashes of keys and file groups: the vectors of docs/format/metadata.md."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pyhudi.format import java_hash as java_hash_of_texts
from pyhudi.metadata.records import file_group_hash
from tests.properties import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def java_hash(text: str) -> int:
    data, h = text.encode("utf-16-be"), 0
    for at in range(0, len(data), 2):
        h = (31 * h + int.from_bytes(data[at : at + 2])) & 0xFFFFFFFF
    return h - (1 << 32) if h >= 1 << 31 else h


@pytest.mark.parametrize(
    ("key", "code", "groups"),
    [
        ("", 0, (0, 0, 0)),
        ("k0001", 100294380, (0, 0, 380)),
        ("__all_partitions__", 460616231, (1, 1, 231)),
        ("polygenelubricants", -2147483648, (0, 8, 648)),
        ("20250101", -1921409981, (1, 1, 981)),
        ("kéy中", None, (0, 4, 314)),
        ("id:1,name:a", None, (0, 0, 620)),
    ],
)
def test_groups(key: str, code: int | None, groups: tuple[int, int, int]):
    if code is not None:
        assert java_hash_of_texts.java_hashes(pa.array([key])).tolist() == [code]
    assert tuple(int(file_group_hash.file_group_index_of(pa.array([key]), n)[0]) for n in (2, 10, 1000)) == groups
    assert file_group_hash.file_group_index_of(pa.array([key]), 1).tolist() == [0]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(TEXTS, max_size=30), st.integers(0, 3), st.integers(1, 40))
@example(["", "𝄞a", "", "é", "\0"], 0, 1)
def test_hashes_are_those_of_java(texts: list[str], start: int, chunk: int):
    array = pa.array(texts, pa.string())[start:]
    whole = java_hash_of_texts._CHUNK_BYTES
    try:
        java_hash_of_texts._CHUNK_BYTES = chunk
        assert java_hash_of_texts.java_hashes(array).tolist() == [java_hash(text) for text in texts[start:]]
    finally:
        java_hash_of_texts._CHUNK_BYTES = whole


def test_a_million_keys_take_no_time_a_key():
    """Vectorised: not a word about seconds, but no Python object a key."""
    numbers = pc.cast(pa.array(np.arange(200_000)), pa.string())
    assert file_group_hash.file_group_index_of(numbers, 10).max() == 9
