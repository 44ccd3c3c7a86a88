"""Tables whose columns change again and again, written and served on Spark, against rows in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import SchemaMismatchError, UnsupportedTableError
from pyhudi.spark.write.dataframe_writer import write
from tests.cases import seldom

pytest.importorskip("sqlglot")

Row = dict[str, Any]
KINDS = {"bigint": int, "string": str, "double": float}


class Evolving:
    """A table and the rows that it should have. Columns beside the key have types by name; ``s`` is a struct."""

    def __init__(self, spark: SparkSession, path: str, kind: str, version: int, seed: int) -> None:
        self.spark, self.path, self.random, self.count = spark, path, random.Random(seed), 0
        self.columns = {"n": "bigint", "t": "string"}
        self.fields = {"a": "bigint"}
        self.rows: dict[int, Row] = {}
        self.options = {
            "hoodie.table.name": "t",
            "hoodie.write.table.version": str(version),
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.table.type": kind,
            "hoodie.compact.inline": "false",
            "hoodie.metadata.index.column.stats.enable": "true",
        }
        self.upsert()

    @property
    def table(self) -> HudiTable:
        return HudiTable.for_path(self.path)

    def frame(self, rows: list[Row]) -> DataFrame:
        fields = ", ".join(f"{name}: {kind}" for name, kind in self.fields.items())
        own = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        names = ["id", *self.columns, "s", "p"]
        values = [tuple(row[name] for name in names) for row in rows]
        return self.spark.createDataFrame(values, f"id int, {own}, s struct<{fields}>, p string")

    def new_row(self, key: int) -> Row:
        self.count += 1
        own = {name: KINDS[kind](self.count) for name, kind in self.columns.items()}
        inside = {name: KINDS[kind](self.count) for name, kind in self.fields.items()}
        return {"id": key, **own, "s": inside, "p": "ab"[key % 2]}

    def upsert(self) -> None:
        rows = [self.new_row(key) for key in self.random.sample(range(8), 3)]
        self.frame(rows).write.format("hudi").options(**self.options).mode("append").save(self.path)
        self.rows |= {row["id"]: row for row in rows}

    def change(self) -> None:
        """Some change of a column or of a field of the struct, with what it makes of the rows."""
        self.count += 1
        inside = self.random.random() < 0.4
        known, where = (self.fields, "s.") if inside else (self.columns, "")
        old, new, kind = self.random.choice(list(known)), f"c{self.count % 4}", self.random.choice(list(KINDS))
        what = self.random.choice(["add", "rename", "again", "drop", "wider", "first"])
        parts = [row["s"] for row in self.rows.values()] if inside else list(self.rows.values())
        with self.table.alter_schema() as columns:
            if what == "add" and new not in known:
                columns.add_column(where + new, kind)
                known[new] = kind
                _each(parts, lambda part: part.update({new: None}))
            elif what == "rename" and new not in known:
                columns.rename_column(where + old, new)
                _each(parts, lambda part: part.update({new: part.pop(old)}))
                known[new] = known.pop(old)
            elif what == "again":
                # another column by the name of a dropped one, beside one that keeps the struct from having none
                columns.add_column(where + "beside", "int").drop_column(where + old)
                columns.add_column(where + old, kind).drop_column(where + "beside")
                known[old] = kind
                _each(parts, lambda part: part.update({old: None}))
            elif what == "drop" and len(known) > 1:
                columns.drop_column(where + old)
                known.pop(old)
                _each(parts, lambda part: part.pop(old))
            elif what == "wider" and known[old] in ("double", "bigint"):
                text = float if known[old] == "double" else int
                columns.change_type(where + old, "string")
                known[old] = "string"
                _each(parts, lambda part: part.update({old: None if part[old] is None else str(text(part[old]))}))
            else:
                columns.move_column(where + old, first=True)

    def check(self) -> None:
        expected = [self.rows[key] for key in sorted(self.rows)]
        names = ["id", *self.columns, "s", "p"]
        for found in (self.spark.read.format("hudi").load(self.path), self.table.scan().to_spark(self.spark)):
            rows = [row.asDict(recursive=True) for row in found.select(*names).orderBy("id").collect()]
            assert rows == [{**{name: row[name] for name in names}} for row in expected]
        table = self.table.scan(columns=names).to_arrow().sort_by("id")
        assert table.to_pylist() == [{name: row[name] for name in names} for row in expected]


def _each(parts: list[Row], change: Callable[[Row], object]) -> None:
    for part in parts:
        change(part)


@pytest.mark.parametrize(
    ("kind", "version", "seed"),
    [
        seldom(("COPY_ON_WRITE", 9, 1)),
        ("MERGE_ON_READ", 9, 2),
        seldom(("COPY_ON_WRITE", 6, 3)),
        seldom(("MERGE_ON_READ", 6, 4)),
        *(seldom((kind, 8, seed)) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ") for seed in range(5, 9)),
    ],
)
def test_every_kind_of_change(spark: SparkSession, tmp_path: Path, kind: str, version: int, seed: int) -> None:
    pyhudi.activate(spark)
    table = Evolving(spark, str(tmp_path / "t"), kind, version, seed)
    for number in range(4):
        table.change()
        table.change()
        table.check()
        table.upsert()
        if number % 2 and kind == "MERGE_ON_READ":
            table.table.services.compact()
        if number == 2:
            table.table.services.cluster()
    table.check()
    assert table.table.validate_metadata().num_rows == 0


def test_sql(spark: SparkSession, tmp_path: Path) -> None:
    pyhudi.activate(spark)
    spark.sql(
        "CREATE TABLE evolving (id INT, name STRING, s STRUCT<a: INT, b: STRING>, price INT, p STRING) USING hudi "
        f"PARTITIONED BY (p) LOCATION '{tmp_path / 't'}' TBLPROPERTIES (primaryKey = 'id')"
    )
    try:
        spark.sql("INSERT INTO evolving VALUES (1, 'a', named_struct('a', 1, 'b', 'x'), 10, 'p')")
        with pytest.raises(UnsupportedTableError, match=r"SET hoodie.schema.on.read.enable=true"):
            spark.sql("ALTER TABLE evolving RENAME COLUMN name TO title")
        spark.sql("SET hoodie.schema.on.read.enable=true")
        for statement in (
            "RENAME COLUMN NAME TO title",
            "RENAME COLUMN s.a TO aa",
            "ADD COLUMNS (city STRING COMMENT 'where' AFTER title, s.c DOUBLE)",
            "ALTER COLUMN price TYPE BIGINT",
            "CHANGE COLUMN price price STRING COMMENT 'as text' FIRST",
            "DROP COLUMNS (s.b)",
            "ALTER COLUMN city COMMENT 'the town'",
            "DROP COLUMN IF EXISTS gone",
        ):
            spark.sql(f"ALTER TABLE evolving {statement}")
        spark.sql("SET hoodie.schema.on.read.enable=false")
        spark.sql("ALTER TABLE evolving ADD COLUMNS (more INT)")  # the history that there is goes on
        spark.sql("UPDATE evolving SET city = 'Oslo', s = named_struct('aa', 5, 'c', 0.5D) WHERE id = 1")
        spark.sql("INSERT INTO evolving (id, title, p, price) VALUES (2, 'b', 'p', '7')")
        assert spark.table("evolving").columns[5:] == ["price", "id", "title", "city", "s", "more", "p"]
        found = spark.sql("SELECT id, title, city, s.aa, s.c, price, more FROM evolving ORDER BY id").collect()
        assert [tuple(row) for row in found] == [
            (1, "a", "Oslo", 5, 0.5, "10", None),
            (2, "b", None, None, None, "7", None),
        ]
        for statement, text in {
            "DROP COLUMN id": "record key fields",
            "RENAME COLUMN p TO q": "partition path fields",
            "ALTER COLUMN title TYPE INT": "values could be lost",
            "ADD COLUMNS (title INT AFTER id)": "exists",
        }.items():
            with pytest.raises(SchemaMismatchError, match=text):
                spark.sql(f"ALTER TABLE evolving {statement}")
    finally:
        spark.sql("SET hoodie.schema.on.read.enable=false")
        spark.sql("DROP TABLE evolving")


NAMES = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.small.file.limit": "0",
}


def _renamed(spark: SparkSession, path: str, *, version: int = 9) -> HudiTable:
    """Return a table with the rows 0 and 1, of which the second was written since a column was renamed."""
    options = {**NAMES, "hoodie.write.table.version": str(version)}
    write(spark.createDataFrame([(0, 0, "before")], "id int, ts int, v string"), path, options)
    table = HudiTable.for_path(path, options)
    table.alter_schema().rename_column("v", "w").commit()
    _add(spark, table, 1)
    return table


def _add(spark: SparkSession, table: HudiTable, key: int) -> str:
    done = table.upsert(spark.createDataFrame([(key, key, f"row {key}")], "id int, ts int, w string"))
    assert done.instant is not None
    return done.instant


def _values(table: HudiTable, **query: Any) -> list[Any]:
    rows = table.scan(columns=["id", "w"], **query).to_arrow().to_pylist()
    return [row["w"] for row in sorted(rows, key=lambda row: row["id"])]


@pytest.mark.parametrize("version", [seldom(6), seldom(9)])
def test_names_outlive_a_restore_to_where_archival_has_stopped(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    table = _renamed(spark, str(tmp_path / "t"), version=version)
    saved = table.services.savepoint().instants[0]
    for key in range(2, 7):
        _add(spark, table, key)
    few = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    assert table.services.archive(few)
    last = [_add(spark, table, key) for key in (7, 8)][-1]
    first = table.history().to_pylist()[-1]["requested"]
    assert first == saved, "only the commit of the savepoint keeps archival from going on"
    assert table.services.rollback(last)
    assert table.services.restore(saved)
    assert _values(table) == ["before", "row 1"]
    _add(spark, table, 9)
    assert _values(table) == ["before", "row 1", "row 9"]


def test_an_overwritten_table_of_other_names_takes_its_history_along(spark: SparkSession, tmp_path: Path) -> None:
    table = _renamed(spark, str(tmp_path / "t"))
    before = table.latest_instant
    rows = spark.createDataFrame([(5, 5, "new")], "id int, ts int, w string")
    write(rows, table.path, NAMES, "overwrite")
    assert _values(table) == ["new"]
    assert before not in table.history()["requested"].to_pylist(), "its files cannot be read without the names"

    write(rows, str(tmp_path / "kept"), NAMES)
    kept = HudiTable.for_path(str(tmp_path / "kept"), NAMES)
    kept.alter_schema().add_column("more", "int").commit()
    before = kept.latest_instant
    more = spark.createDataFrame([(6, 6, "newer", 1)], "id int, ts int, w string, more int")
    write(more, kept.path, NAMES, "overwrite")
    assert _values(kept) == ["newer"]
    assert _values(kept, as_of=before) == ["new"]
