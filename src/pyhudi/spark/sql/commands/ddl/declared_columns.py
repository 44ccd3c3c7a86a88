"""Columns that statements declare."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from pyhudi.errors import UnsupportedTableError
from pyhudi.schema.logical_types.blobs import is_blob_text
from pyhudi.schema.logical_types.variants import is_variant_text
from pyhudi.schema.logical_types.vectors import parse_vector
from pyhudi.spark.spark_types import HAS_VARIANTS, spark_schema, uncollated_type
from pyhudi.sql.rewriting.hudi_column_types import Path, with_string_types, without_hudi_types
from pyhudi.sql.token_cursor import Cursor

_COMPUTED = {"DEFAULT": "a DEFAULT", "GENERATED": "GENERATED ALWAYS AS"}
_CONSTRAINTS = (("PRIMARY", "KEY"), ("FOREIGN", "KEY"), ("REFERENCES",), ("CHECK",), ("UNIQUE",))
_DEPTHS = {"(": 1, "<": 1, ")": -1, ">": -1, ">>": -2, ">>>": -3}


def declared_schema(spark: SparkSession, columns: str) -> StructType:
    """Return the schema that a list of columns declares.

    Args:
        spark: The session, which reads the list.
        columns: Names and types as SQL. ``VARCHAR(n)`` and ``CHAR(n)`` are ``STRING``, as in the schema of a table that
            Apache Hudi creates.

    Returns:
        The columns with types of Spark. Vectors are arrays; blobs, and variants before Spark 4, are structs. Metadata
        of the fields identifies these types.

    Raises:
        UnsupportedTableError: A type is one of Apache Hudi's that this release does not serve, a column has a default
            value, a collation or a constraint, or is generated.
        SchemaError: The type of a vector is not valid.
    """
    if any(word in columns.upper() for word in _COMPUTED):
        _refuse_computed_values(columns)
    text, types = without_hudi_types(with_string_types(columns), variants=not HAS_VARIANTS)
    try:
        declared = spark.createDataFrame([], text).schema
    except ParseException as e:
        kind = dict(e.getMessageParameters() or {}).get("typeName", "").strip('"')  # of Java, without defaults, on 3.5
        raise _refusal(kind) or (None if kind else _refused_constraint(columns)) or e from e
    _refuse_collations(declared)
    return _marked(declared, types, ())


def _refuse_computed_values(columns: str) -> None:
    """Refuse columns with values that Spark would have to compute, which tables do not store.

    Raises:
        UnsupportedTableError: The message has one of them.
    """
    cursor = Cursor(columns)
    name, depth, start = "", 0, True
    while not cursor.done:
        word = cursor.word()
        if start:
            name = cursor.tokens[cursor.at].text
        elif not depth and word in _COMPUTED and cursor.word(1) != ":":
            raise UnsupportedTableError(
                f"the column {name!r} cannot have {_COMPUTED[word]}: a Hudi table does not store it; leave it out, and "
                "insert the value"
            )
        depth += _DEPTHS.get(word, 0)
        start = not depth and word == ","
        cursor.at += 1


def _refused_constraint(columns: str) -> UnsupportedTableError | None:
    """Return the error for a constraint in a list of columns that Spark cannot parse; None if there is none. A column
    may be called like one."""
    cursor, depth, start = Cursor(columns), 0, True
    while not cursor.done:
        words = () if depth else next((words for words in _CONSTRAINTS if cursor.sees(*words)), ())
        constraint = " ".join(words) if not start or cursor.word(len(words)) == "(" else ""
        if constraint == "PRIMARY KEY":
            return UnsupportedTableError(
                "a Hudi table has its record key in TBLPROPERTIES (primaryKey = 'column, …'), and no PRIMARY KEY among "
                "its columns: move it there"
            )
        if constraint:
            return UnsupportedTableError(
                f"a Hudi table has no constraints such as {constraint}: leave it out, and check rows before they are "
                "written, or by hoodie.precommit.validators"
            )
        depth += _DEPTHS.get(cursor.word(), 0)
        start = not depth and cursor.word() == ","
        cursor.at += 1
    return None


def _refuse_collations(declared: StructType) -> None:
    """Refuse texts that would be compared by other rules than their bytes, as those of files are.

    Raises:
        UnsupportedTableError: The message has the column.
    """
    for field in declared:
        if uncollated_type(field.dataType) != field.dataType:
            raise UnsupportedTableError(
                f"the column {field.name!r} cannot have the type {field.dataType.simpleString()}: a Hudi table does "
                "not store collations; leave COLLATE out, and write it into comparisons"
            )


def _marked(struct: StructType, types: Mapping[Path, pa.DataType], parent: Path) -> StructType:
    """Return the fields of a struct, with metadata of those with types of Apache Hudi."""
    fields = []
    for field in struct:
        path, data_type, metadata = (*parent, field.name), field.dataType, field.metadata
        if path in types:
            hudi_field = spark_schema(pa.schema([pa.field(field.name, types[path])]))[field.name]
            data_type, metadata = hudi_field.dataType, {**metadata, **hudi_field.metadata}
        elif isinstance(data_type, StructType):
            data_type = _marked(data_type, types, path)
        fields.append(StructField(field.name, data_type, field.nullable, metadata))
    return StructType(fields)


def _refusal(kind: str) -> Exception | None:
    """Return the error for a type of Apache Hudi; None for others."""
    if is_blob_text(kind):
        return UnsupportedTableError(
            f"the type {kind} is not supported inside of arrays and maps; declare a column, or a field of a struct"
        )
    if is_variant_text(kind) or parse_vector(kind) is not None:
        return UnsupportedTableError(
            f"the type {kind} is not supported inside of structs, arrays and maps; declare a column of it"
        )
    return None
