"""Columns of the types VECTOR, BLOB and VARIANT, and table functions that search them, in SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaError, SqlSyntaxError
from pyhudi.schema.logical_types.blobs import BLOB
from pyhudi.schema.logical_types.variants import VARIANT
from pyhudi.schema.logical_types.vectors import vector_type
from pyhudi.sql.rewriting.hudi_column_types import with_string_types, without_hudi_types
from pyhudi.sql.table_references import find_references


def test_columns() -> None:
    columns = (
        "id STRING, vector VECTOR(3) NOT NULL COMMENT 'a VECTOR(3)', s STRUCT<a: ARRAY<ARRAY<INT>>, v: VECTOR(5)>, "
        "`my vector` vector( 4 , int8 ), w DECIMAL(3, 2), x Vector(2,DOUBLE) COMMENT 'last'"
    )
    text, vectors = without_hudi_types(columns)
    assert text == (
        "id STRING, vector ARRAY<FLOAT> NOT NULL COMMENT 'a VECTOR(3)', s STRUCT<a: ARRAY<ARRAY<INT>>, v: VECTOR(5)>, "
        "`my vector` ARRAY<TINYINT>, w DECIMAL(3, 2), x ARRAY<DOUBLE> COMMENT 'last'"
    )
    assert vectors == {
        ("vector",): vector_type(3, pa.float32()),
        ("my vector",): vector_type(4, pa.int8()),
        ("x",): vector_type(2, pa.float64()),
    }
    with pytest.raises(SchemaError, match="must be at least 1"):
        without_hudi_types("v VECTOR(0)")


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("id INT, b BLOB", {"b"}),
        ("blob blob COMMENT 'a BLOB', data: Blob NOT NULL, `type` STRING", {"blob", "data"}),
        ("blob INT, s STRUCT<blob: INT, x: BLOB>, l ARRAY<BLOB>, vector INT", {"s.x"}),
        (
            "s STRUCT<a BLOB COMMENT 'x, y', t: STRUCT<n: DECIMAL(3, 2), c: BLOB>> NOT NULL, b BLOB",
            {"s.a", "s.t.c", "b"},
        ),
        ("a ARRAY<STRUCT<x: BLOB>>, m MAP<INT, STRUCT<x: BLOB, y: STRUCT<z: BLOB>>>, b BLOB", {"b"}),
        ("s STRUCT<b: STRUCT<c: ARRAY<STRUCT<d: INT>>>, e: BLOB>, f BLOB", {"s.e", "f"}),
        ("d DECIMAL(3, 2), `my blob` BLOB, v VECTOR(3)", {"my blob", "v"}),
    ],
)
def test_blobs(columns: str, names: set[str]) -> None:
    text, types = without_hudi_types(columns)
    assert {".".join(path) for path in types} == names
    assert {kind for name, kind in types.items() if name != ("v",)} <= {BLOB}
    assert text.count("STRUCT<type: STRING, data: BINARY, reference: ") == len(names - {"v"})


def test_variants_are_left_to_releases_of_spark_that_have_them() -> None:
    columns = "id INT, v VARIANT COMMENT 'a VARIANT', variant STRING"
    text, types = without_hudi_types(columns)
    assert text == "id INT, v STRUCT<value: BINARY, metadata: BINARY> COMMENT 'a VARIANT', variant STRING"
    assert types == {("v",): VARIANT}
    assert without_hudi_types(columns, variants=False) == (columns, {})


def test_arguments_of_searches_are_expressions() -> None:
    query = (
        "SELECT s.id FROM hudi_vector_search('t', 'v', -- the query\n array(0.1, -f(2, 3)), k => 1 + 1) AS s "
        "JOIN other ON s.id = other.id WHERE _hudi_distance < 0.5"
    )
    found, other = find_references(query) or []
    assert found.arguments == ("'t'", "'v'", "array(0.1, -f(2, 3))", "k => 1 + 1")
    assert query[found.end :].startswith(" AS s")
    assert found.alias_at is None
    assert other.name == ("other",)
    subquery = find_references("SELECT * FROM hudi_vector_search('t', 'v', (SELECT v FROM q WHERE id = 1), 2)") or []
    assert [one.name for one in subquery] == [("hudi_vector_search",)]
    with pytest.raises(SqlSyntaxError, match="an argument"):
        find_references("SELECT * FROM hudi_vector_search('t', , 2)")


def test_character_types_are_strings():
    columns = "id INT NOT NULL, char CHAR(4) COMMENT 'CHAR(3)', s STRUCT<a: VARCHAR(10), b: ARRAY<character(2)>>"
    assert with_string_types(columns) == (
        "id INT NOT NULL, char STRING COMMENT 'CHAR(3)', s STRUCT<a: STRING, b: ARRAY<STRING>>"
    )
    assert with_string_types("charm INT, n STRING") == "charm INT, n STRING"
