from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.schema.name_resolution import matches_ignoring_case, resolve_name, resolve_path, top_column


@pytest.mark.parametrize(
    ("name", "found", "sensitive"),
    [
        ("ab", "ab", "ab"),
        ("AB", "AB", "AB"),
        ("Ab", None, None),  # of two names that differ in case
        ("CD", "cd", None),
        ("STRASSE", None, None),
        ("ef", None, None),
    ],
)
def test_names_regardless_of_case(name: str, found: str | None, sensitive: str | None):
    names = ["ab", "AB", "cd", "straße"]

    assert resolve_name(name, names) == found
    assert resolve_name(name, names, case_sensitive=True) == sensitive


def test_all_names_that_differ_in_case():
    assert matches_ignoring_case("Ab", ["ab", "AB", "abc"]) == ["ab", "AB"]


@pytest.mark.parametrize(
    ("name", "found", "sensitive"),
    [
        ("Place.City", ["Place", "City"], ["Place", "City"]),
        ("place.CITY", ["Place", "City"], None),
        ("a.b", ["a.b"], ["a.b"]),
        ("A.B", ["a.b"], None),
        ("place.street", None, None),
        ("place.city.part", None, None),
    ],
)
def test_paths_into_structs(name: str, found: list[str] | None, sensitive: list[str] | None):
    schema = pa.schema(
        {"a.b": pa.int64(), "Place": pa.struct({"City": pa.string()}), "a": pa.struct({"b": pa.int64()})}
    )

    assert resolve_path(name, schema) == found
    assert resolve_path(name, schema, case_sensitive=True) == sensitive


@pytest.mark.parametrize(("name", "top"), [("a", "a"), ("a.b", "a.b"), ("a.c", "a"), ("b.c.d", "b"), ("c", "c")])
def test_the_column_of_a_field(name: str, top: str):
    assert top_column(name, ["a", "a.b"]) == top
