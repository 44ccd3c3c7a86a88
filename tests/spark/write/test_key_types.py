"""Record keys and partition paths of rows whose types are narrower than the table's."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import SchemaMismatchError
from pyhudi.spark.write.dataframe_writer import write
from tests.spark.model import options, rows_of


def _rows(spark: SparkSession, id_type: str, part_type: str, *rows: tuple[Any, ...]) -> DataFrame:
    df = spark.createDataFrame(
        [(str(row[0]), str(row[1]), *row[2:]) for row in rows], "id string, part string, ts long"
    )
    return df.selectExpr(f"cast(id as {id_type}) id", f"cast(part as {part_type}) part", "ts", "string(ts) v")


@pytest.mark.parametrize(
    ("index", "wide", "narrow"),
    [
        ("SIMPLE", ("double", "string"), ("int", "date")),
        ("BUCKET", ("decimal(10, 2)", "double"), ("decimal(8, 1)", "float")),
        ("RECORD_INDEX", ("string", "decimal(10, 2)"), ("int", "bigint")),
    ],
)
def test_upserts_and_deletes(
    spark: SparkSession, tmp_path: Path, index: str, wide: tuple[str, str], narrow: tuple[str, str]
) -> None:
    path, more = str(tmp_path / "table"), {"hoodie__index__type": index}
    part = "2024-01-02" if narrow[1] == "date" else "7"
    write(_rows(spark, *wide, (1, part, 1), (2, part, 1)), path, options("upsert", **more))
    before = HudiTable.for_path(path).scan().to_spark(spark)
    write(_rows(spark, *narrow, (1, part, 2), (3, part, 2)), path, options("upsert", **more))
    found = HudiTable.for_path(path).scan().to_spark(spark)
    assert [row["ts"] for row in found.orderBy("id").collect()] == [2, 1, 2]
    assert found.select("_hoodie_partition_path").distinct().count() == 1, "one folder"
    assert found.dtypes == before.dtypes
    write(_rows(spark, *narrow, (2, part, 3)), path, options("delete", **more))
    assert HudiTable.for_path(path).scan().to_spark(spark).count() == 2


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "insert_overwrite"])
def test_new_files(spark: SparkSession, tmp_path: Path, operation: str) -> None:
    path = str(tmp_path / "table")
    write(_rows(spark, "double", "double", (1, 7, 1)), path, options("insert"))
    write(_rows(spark, "int", "float", (2, 7, 1)), path, options(operation))
    meta = ("_hoodie_record_key", "_hoodie_partition_path")
    kept = [] if operation == "insert_overwrite" else [("1.0", "7.0")]
    assert rows_of(path, meta) == [*kept, ("2.0", "7.0")]


def test_fields_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    more = {
        "hoodie__datasource__write__recordkey__field": "s.id",
        "hoodie__datasource__write__partitionpath__field": "s.part",
    }

    def rows(kind: str, ts: int) -> DataFrame:
        return spark.sql(f"select named_struct('id', cast(1 as {kind}), 'part', cast(7 as {kind})) s, {ts} ts")

    write(rows("double", 1), path, options("insert", **more))
    write(rows("int", 2), path, options("upsert", **more))
    assert rows_of(path, ("s", "ts")) == [({"id": 1.0, "part": 7.0}, 2)]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_that_do_not_fit(spark: SparkSession, tmp_path: Path, ansi: str) -> None:
    path = str(tmp_path / "table")
    write(_rows(spark, "decimal(4, 2)", "string", (1, 7, 1)), path, options("insert"))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(SchemaMismatchError, match=r"'1234\.5' of column 'id' from double to decimal\(4,2\)"):
            write(_rows(spark, "double", "string", (1234.5, 7, 1)), path, options("upsert"))
        write(_rows(spark, "double", "string", (1.0, 7, 2)), path, options("upsert"))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert rows_of(path, ("id", "ts")) == [(Decimal("1.00"), 2)]


def test_wider_types_make_no_second_record(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write(_rows(spark, "int", "int", (1, 7, 1)), path, options("insert"))
    for kinds in (("double", "int"), ("int", "double"), ("string", "int")):
        for operation in ("upsert", "delete"):
            with pytest.raises(SchemaMismatchError, match=r"is int32 in the table .* cast it to int32"):
                write(_rows(spark, *kinds, (1, 7, 2)), path, options(operation))
    assert HudiTable.for_path(path).history().num_rows == 1, "nothing was begun"
    write(_rows(spark, "bigint", "bigint", (1, 7, 2), (2**40, 7, 2)), path, options("upsert"))
    assert rows_of(path, ("id", "part", "ts")) == [(1, 7, 2), (2**40, 7, 2)]


@pytest.mark.skipif(not hasattr(StringType(), "collation"), reason="Spark has collations from version 4 on")
@pytest.mark.parametrize("index", ["SIMPLE", "BUCKET", "RECORD_INDEX"])
def test_collations(spark: SparkSession, tmp_path: Path, index: str) -> None:
    """Keys, partitions and ordering values are compared by their bytes, as by every other writer."""
    path, more = str(tmp_path / "table"), {"hoodie__index__type": index}
    found = [("A", "p", 1, "y"), ("a", "p", 1, "x"), ("b", "P", 1, "z")]
    rows = spark.createDataFrame(found, "id string, part string, ts long, v string")
    texts = [f"collate({name}, 'UTF8_LCASE') {name}" for name in ("id", "part")]
    collated = rows.selectExpr(*texts, "ts", "array(collate(v, 'UNICODE'))[0] v")
    for _ in range(2):
        write(collated, path, options("upsert", **more))
        assert rows_of(path) == found
