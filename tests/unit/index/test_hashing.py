"""Buckets of record keys: the numbers are what Apache Hudi's own classes give."""

from __future__ import annotations

import pytest

from pyhudi.index.hashing import bucket_of, java_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("k0001", 100294380), ("polygenelubricants", 2**31), ("20250101", 2**32 - 1921409981)],
)
def test_the_hash_of_a_text_is_that_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code


@pytest.mark.parametrize(
    ("key", "fields", "four", "eight"),
    [
        ("k0001", ["id"], 3, 3),
        ("k0002", ["id"], 0, 4),
        ("id:k0001,i:1", ["id"], 3, 3),
        ("id:k0001,i:1", ["id", "i"], 2, 6),
        ("a,b", ["id"], 2, 6),
        ("id:a,b:c,name:x", ["id"], 0, 0),
        ("id:k0001", ["id"], 0, 4),
    ],
)
def test_the_bucket_of_a_key(key: str, fields: list[str], four: int, eight: int) -> None:
    assert bucket_of(key, fields, 4) == four
    assert bucket_of(key, fields, 8) == eight


def test_release_0_15_looks_into_keys_of_one_part() -> None:
    assert bucket_of("id:k0001", ["id"], 4, splits_any=True) == 3
