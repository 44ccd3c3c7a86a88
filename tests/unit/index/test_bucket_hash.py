"""Buckets of record keys: the numbers are what Apache Hudi's own classes give."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.format.java_hash import java_hashes
from pyhudi.index.bucket_hash import bucket_hashes, hashed_values, java_list_hash
from tests.bucket_numbers import bucket_of


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("k0001", 100294380), ("polygenelubricants", 2**31), ("20250101", 2**32 - 1921409981)],
)
def test_the_hash_of_a_text_is_that_of_java(text: str, code: int) -> None:
    assert java_hashes(pa.array([text])).tolist() == [code - 2**32 if code >= 2**31 else code]


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
    assert bucket_of("id:k0001", ["id"], 4, legacy_key_split=True) == 3


_TEXT = st.text(st.sampled_from("ab,:é\U0001f600\n"), max_size=6)
_CLEAN = st.sampled_from(["a", "", "__null__", "__empty__", "é\U0001f600", "12", "a b"])


@given(keys=st.lists(_TEXT, max_size=8), legacy_key_split=st.booleans())
def test_whole_columns_of_keys_of_one_field(keys: list[str], legacy_key_split: bool) -> None:
    found = bucket_hashes(pa.array(keys, pa.string()), ["a"], ["a"], legacy_key_split=legacy_key_split)
    assert found.tolist() == [
        java_list_hash(hashed_values(key, ["a"], legacy_key_split=legacy_key_split)) for key in keys
    ]


@given(
    keys=st.lists(st.text(st.sampled_from("xyz,:\x01\x02\\\n\U0001f600"), max_size=12), max_size=8),
    legacy_key_split=st.booleans(),
)
def test_whole_columns_of_keys_of_any_form(keys: list[str], legacy_key_split: bool) -> None:
    fields = ["x", "y", ""]
    found = bucket_hashes(pa.array(keys, pa.string()), fields, ["x", ""], legacy_key_split=legacy_key_split)
    assert found.tolist() == [
        java_list_hash(hashed_values(key, ["x", ""], legacy_key_split=legacy_key_split)) for key in keys
    ]


@given(
    values=st.lists(st.tuples(st.one_of(_CLEAN, _TEXT), _CLEAN), max_size=8),
    fields=st.sampled_from([["x"], ["y"], ["x", "y"], ["y", "x"]]),
)
def test_whole_columns_of_keys_of_two_fields(values: list[tuple[str, str]], fields: list[str]) -> None:
    keys = [f"x:{x},y:{y}" for x, y in values]
    found = bucket_hashes(pa.array(keys, pa.string()), ["x", "y"], fields)
    assert found.tolist() == [java_list_hash(hashed_values(key, fields)) for key in keys]
