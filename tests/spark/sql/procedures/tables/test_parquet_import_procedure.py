"""CALL hdfs_parquet_import."""

from __future__ import annotations

import json

import pytest

from pyhudi.errors import QueryError, SchemaMismatchError, TableExistsError

pytest.importorskip("sqlglot")


@pytest.fixture
def imported(spark, tmp_path):
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    spark.sql("SELECT id, concat('n', id) AS name, 86400 * id AS day, 'x' AS unused FROM range(3)").write.parquet(
        source
    )
    fields = [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "day", "type": "long"},
    ]
    schema = tmp_path / "schema.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "row", "fields": fields}))

    def call(**arguments):
        given = {
            "table": "imported",
            "table_type": "COPY_ON_WRITE",
            "src_path": source,
            "target_path": target,
            "row_key": "id",
            "partition_key": "day",
            "schema_file_path": str(schema),
            **arguments,
        }
        named = ", ".join(f"{name} => '{value}'" for name, value in given.items())
        return [tuple(row) for row in spark.sql(f"CALL hdfs_parquet_import({named})").collect()]

    return call, source, target, schema


def test_rows_of_parquet_files_become_a_table(spark, imported):
    call, source, target, _ = imported
    with pytest.raises(QueryError, match="command is one of insert, upsert, bulkinsert, not 'merge'"):
        call(command="merge")
    assert call(command="bulkinsert") == [(0,)]
    rows = spark.read.format("hudi").load(target)
    assert [name for name in rows.columns if not name.startswith("_hoodie")] == ["id", "name", "day"]
    found = sorted(tuple(row) for row in rows.select("id", "name", "_hoodie_partition_path").collect())
    assert found == [(n, f"n{n}", f"1970/01/0{n + 1}") for n in range(3)]
    with pytest.raises(TableExistsError, match="command => 'upsert'"):
        call()
    spark.sql("SELECT 2L AS id, 'changed' AS name, 172800L AS day").write.mode("append").parquet(f"{source}-2")
    assert call(command="upsert", src_path=f"{source}-2") == [(0,)]
    again = spark.read.format("hudi").load(target)
    assert sorted(row[0] for row in again.select("name").collect()) == ["changed", "n0", "n1"]


def test_a_column_that_the_files_lack(imported):
    call, _, _, schema = imported
    schema.write_text(schema.read_text().replace('"name", "type": ["null"', '"nmae", "type": ["null"'))
    with pytest.raises(SchemaMismatchError, match="have no column 'nmae' of the schema; their columns: id, name"):
        call()
