"""Columns of a table after a write: those of keys, partitions and orderings keep their types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.config import Options
from pyhudi.config.enums import Operation
from pyhudi.errors import SchemaMismatchError
from pyhudi.spark.write.write_input import unused_by_deletes, write_schema
from pyhudi.table.config.table_config import TableConfig

OPTIONS = Options.parse(
    {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "s.id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.write.set.null.for.missing.columns": "true",
    }
)
CONFIG = TableConfig.for_new_table(OPTIONS)
TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "bool": pa.bool_(),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(12,2)": pa.decimal128(12, 2),
    "decimal(12,3)": pa.decimal128(12, 3),
}
ROLES = {"s.id": "record key", "part": "partition path", "ts": "ordering"}


def columns(kinds: dict[str, pa.DataType]) -> pa.Schema:
    kinds = dict.fromkeys(ROLES, pa.int32()) | kinds
    struct = pa.struct([("id", kinds["s.id"]), ("name", pa.string())])
    return pa.schema([("s", struct), ("part", kinds["part"]), ("ts", kinds["ts"]), ("v", pa.int32())])


def after(name: str, table: str, incoming: str, operation: Operation = Operation.UPSERT) -> pa.Schema:
    now, rows = columns({name: TYPES[table]}), columns({name: TYPES[incoming]})
    return write_schema(rows, now, CONFIG, operation, OPTIONS)


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.BULK_INSERT, Operation.DELETE])
@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        ("int", "double"),
        ("int", "string"),
        ("long", "float"),
        ("float", "double"),
        ("double", "string"),
        ("decimal(9,2)", "decimal(12,3)"),
        ("int", "bool"),
        ("int", "date"),
    ],
)
def test_other_types_are_refused(name: str, operation: Operation, table: str, incoming: str) -> None:
    with pytest.raises(SchemaMismatchError) as refused:
        after(name, table, incoming, operation)
    old, new = TYPES[table], TYPES[incoming]
    for part in (f"column {name!r} is {old} in the table and {new} in the incoming", ROLES[name], f"cast it to {old}"):
        assert part in str(refused.value)


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize(
    ("table", "incoming", "expected"),
    [
        ("long", "int", "long"),
        ("double", "long", "double"),
        ("string", "date", "string"),
        ("decimal(12,3)", "decimal(9,2)", "decimal(12,3)"),
        # the texts of values stay the same, so keys and paths do too
        ("int", "long", "long"),
        ("decimal(9,2)", "decimal(12,2)", "decimal(12,2)"),
    ],
)
def test_types_with_the_same_texts(name: str, table: str, incoming: str, expected: str) -> None:
    assert after(name, table, incoming) == columns({name: TYPES[expected]})


@pytest.mark.parametrize(
    ("name", "incoming", "unused"),
    [
        ("ts", "double", ["ts"]),
        ("ts", "string", ["ts"]),
        ("ts", "long", []),
        ("ts", "int", []),
        ("part", "double", []),
        ("s.id", "double", []),
    ],
)
def test_deletes_do_not_use_ordering_fields_of_other_types(name: str, incoming: str, unused: list[str]) -> None:
    assert unused_by_deletes(columns({name: TYPES[incoming]}), columns({}), CONFIG, OPTIONS) == unused


def test_deletes_use_ordering_fields_that_make_keys() -> None:
    given = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "ts",
        "hoodie.table.ordering.fields": "ts",
    }
    opts = Options.parse(given)
    config = TableConfig.for_new_table(opts)
    assert unused_by_deletes(columns({"ts": pa.string()}), columns({}), config, opts) == []


def test_other_columns_become_wider() -> None:
    rows = columns({}).set(3, pa.field("v", pa.string()))
    assert write_schema(rows, columns({}), CONFIG, Operation.UPSERT, OPTIONS).field("v").type == pa.string()


def test_columns_without_a_type_are_null() -> None:
    rows = columns({"ts": pa.null()})
    assert write_schema(rows, columns({}), CONFIG, Operation.UPSERT, OPTIONS) == columns({})


def test_partition_columns_that_files_lack() -> None:
    """The table has them as texts, so a new one is refused whose later rows would be."""
    dropping = {**OPTIONS, "hoodie.datasource.write.drop.partition.columns": "true"}
    opts = Options.parse(dropping)
    config = TableConfig.for_new_table(opts)
    table = columns({"part": pa.string()})
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        rows = columns({"part": kind})
        with pytest.raises(SchemaMismatchError, match=r"'part' is timestamp.*cast it to a date, or to a number"):
            write_schema(rows, None, config, Operation.UPSERT, opts)
        with pytest.raises(SchemaMismatchError, match="'part' is string in the table and timestamp"):
            write_schema(rows, table, config, Operation.UPSERT, opts)
        assert write_schema(rows, None, CONFIG, Operation.UPSERT, OPTIONS).field("part").type == kind
    for kind in (pa.string(), pa.int64(), pa.date32()):
        for now in (None, table):
            assert "part" not in write_schema(columns({"part": kind}), now, config, Operation.UPSERT, opts).names
