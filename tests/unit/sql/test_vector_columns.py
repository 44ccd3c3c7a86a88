"""Columns of the type VECTOR, and table functions that search them, in SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.errors import SchemaError, SqlSyntaxError
from pyhudi.schema.vectors import vector_type
from pyhudi.sql.table_references import find_references
from pyhudi.sql.vector_columns import without_vectors


def test_columns() -> None:
    columns = (
        "id STRING, vector VECTOR(3) NOT NULL COMMENT 'a VECTOR(3)', s STRUCT<a: ARRAY<ARRAY<INT>>, v: VECTOR(5)>, "
        "`my vector` vector( 4 , int8 ), w DECIMAL(3, 2), x Vector(2,DOUBLE) COMMENT 'last'"
    )
    text, vectors = without_vectors(columns)
    assert text == (
        "id STRING, vector ARRAY<FLOAT> NOT NULL COMMENT 'a VECTOR(3)', s STRUCT<a: ARRAY<ARRAY<INT>>, v: VECTOR(5)>, "
        "`my vector` ARRAY<TINYINT>, w DECIMAL(3, 2), x ARRAY<DOUBLE> COMMENT 'last'"
    )
    assert vectors == {
        "vector": vector_type(3, pa.float32()),
        "my vector": vector_type(4, pa.int8()),
        "x": vector_type(2, pa.float64()),
    }
    with pytest.raises(SchemaError, match="must be at least 1"):
        without_vectors("v VECTOR(0)")


def test_arguments_of_searches_are_expressions() -> None:
    query = (
        "SELECT s.id FROM hudi_vector_search('t', 'v', -- the query\n array(0.1, -f(2, 3)), k => 1 + 1) AS s "
        "JOIN other ON s.id = other.id WHERE _hudi_distance < 0.5"
    )
    found, other = find_references(query) or []
    assert found.arguments == ("'t'", "'v'", "array(0.1, -f(2, 3))", "k => 1 + 1")
    assert query[found.end :].startswith(" AS s")
    assert found.aliased
    assert other.name == ("other",)
    subquery = find_references("SELECT * FROM hudi_vector_search('t', 'v', (SELECT v FROM q WHERE id = 1), 2)") or []
    assert [one.name for one in subquery] == [("hudi_vector_search",)]
    with pytest.raises(SqlSyntaxError, match="an argument"):
        find_references("SELECT * FROM hudi_vector_search('t', , 2)")
