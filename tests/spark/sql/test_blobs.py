"""Columns of the type BLOB on Spark: declared, written, and read."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import SchemaError, SchemaMismatchError, SqlSyntaxError, UnsupportedTableError
from pyhudi.schema.logical_types.blobs import BLOB
from tests.cases import seldom
from tests.spark.sql.ride_tables import rows_in_order as rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")

STRUCT = (
    "struct<type:string,data:binary,reference:struct<external_path:string,offset:bigint,length:bigint,managed:boolean>>"
)
NO_REFERENCE = "CAST(NULL AS STRUCT<external_path: STRING, `offset`: BIGINT, length: BIGINT, managed: BOOLEAN>)"


def inline(text):
    return f"named_struct('type', 'INLINE', 'data', X'{text.encode().hex()}', 'reference', {NO_REFERENCE})"


def reference(path, offset="NULL", length="NULL"):
    there = f"named_struct('external_path', '{path}', 'offset', {offset}, 'length', {length}, 'managed', false)"
    return f"named_struct('type', 'OUT_OF_LINE', 'data', CAST(NULL AS BINARY), 'reference', {there})"


def create(spark, tmp_path, kind="cow"):
    container = tmp_path / "container.bin"
    container.write_bytes(bytes(range(256)) * 4)
    path = str(tmp_path / kind)
    spark.sql(
        "CREATE TABLE t (id STRING, b BLOB COMMENT 'bytes', n INT, c BLOB) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', type = '{kind}') LOCATION '{path}'"
    )
    spark.sql(
        f"INSERT INTO t VALUES ('a', {inline('one')}, 1, null), ('b', {reference(container, 10, 4)}, 2, null), "
        f"('c', {reference(container)}, 3, {inline('c')}), ('d', null, 4, {reference(container, '12L', '4L')})"
    )
    return path, container


@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
def test_statements(spark, tmp_path, kind):
    path, container = create(spark, tmp_path, kind)
    field = spark.table("t").schema["b"]
    assert field.dataType.simpleString() == STRUCT
    assert field.metadata == {"hudi_type": "BLOB", "comment": "bytes"}
    assert ("b", STRUCT, "bytes") in rows(spark, "DESCRIBE t")
    with pytest.raises(SchemaMismatchError, match="column 'b' is a BLOB, but the field 'type' of a value is 'BLA'"):
        spark.sql("INSERT INTO t VALUES ('x', named_struct('type', 'BLA', 'data', X'01', 'reference', null), 1, null)")
    spark.sql(f"UPDATE t SET b = {inline('two')} WHERE id = 'a'")
    spark.sql("UPDATE t SET n = 30 WHERE id = 'c'")
    spark.sql(
        f"MERGE INTO t USING (SELECT 'e' AS id, {inline('new')} AS b, 5 AS n, {reference(container, 0, 2)} AS c) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("DELETE FROM t WHERE id = 'd'")
    data = container.read_bytes()
    expected = [
        ("a", b"two", 1, None),
        ("b", data[10:14], 2, None),
        ("c", data, 30, b"c"),
        ("e", b"new", 5, data[:2]),
    ]
    query = "SELECT id, read_blob(b), n, read_blob(c) AS c FROM t ORDER BY id"
    assert rows(spark, query) == expected
    table = HudiTable.for_path(path)
    if kind == "mor":
        table.services.compact()
        assert rows(spark, query) == expected
    table.services.cluster()
    assert rows(spark, query) == expected
    assert table.schema.field("b").type == BLOB
    newest = max(tmp_path.glob(f"{kind}/*.parquet"), key=lambda file: file.stat().st_mtime)
    leaf = next(one for one in pq.ParquetFile(newest).schema if one.path == "b.type")
    assert leaf.logical_type.type == "ENUM"
    assert sorted(table.scan(columns=["id"], filter="n = 30").to_arrow()["id"].to_pylist()) == ["c"]


def test_reads(spark, tmp_path):
    path, container = create(spark, tmp_path)
    data = container.read_bytes()
    assert spark.sql("SELECT id, read_blob(t.b), n FROM t").columns == ["id", "read_blob(t.b)", "n"]
    assert rows(spark, "SELECT id FROM t WHERE length(read_blob(b)) > 4") == [("c",)]
    both = "SELECT x.id, concat(read_blob(x.c), Read_Blob(y.b)) FROM t x JOIN t y ON x.n = y.n + 1 WHERE x.id = 'd'"
    assert rows(spark, both) == [("d", data[12:16] + data)]
    assert rows(spark, "SELECT max(length(read_blob(b))) FROM (SELECT * FROM t WHERE id <> 'c') s") == [(4,)]
    spark.read.format("hudi").load(path).createOrReplaceTempView("view_of_t")
    assert rows(spark, "SELECT read_blob(b) FROM view_of_t WHERE id = 'a'") == [(b"one",)]
    spark.sql(
        "CREATE TABLE copy USING hudi TBLPROPERTIES (primaryKey = 'id') AS SELECT id, b, read_blob(b) AS d FROM t"
    )
    assert rows(spark, "SELECT read_blob(b) = d FROM copy WHERE d IS NOT NULL") == [(True,)] * 3
    assert spark.table("copy").schema["b"].metadata["hudi_type"] == "BLOB"
    frame = spark.read.format("hudi").load(path).where("n > 1").select("id", pyhudi.read_blob("b").alias("x"))
    assert sorted(map(tuple, frame.collect())) == [("b", data[10:14]), ("c", data), ("d", None)]
    local = HudiTable.for_path(path).scan(columns=["id", "b"]).to_arrow().sort_by("id")
    assert pyhudi.read_blobs(local["b"]).to_pylist() == [b"one", data[10:14], data, None]
    with pytest.raises(SqlSyntaxError, match="read_blob takes one argument"):
        spark.sql("SELECT read_blob(b, c) FROM t")
    spark.sql(f"INSERT INTO t VALUES ('x', {reference(container, 1020, 10)}, 9, null)")
    with pytest.raises(Exception, match=r"a blob ends at byte 1030 of '.*container.bin'"):
        spark.sql("SELECT read_blob(b) FROM t").collect()
    # without references nothing is read outside of the table
    assert rows(spark, "SELECT id FROM t WHERE n = 9") == [("x",)]


def test_dataframes(spark, tmp_path):
    path, _ = create(spark, tmp_path)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    plain = spark.sql(f"SELECT 'e' AS id, {inline('five')} AS b, 5 AS n, CAST(NULL AS {STRUCT}) AS c")
    for operation in ("upsert", "bulk_insert"):
        writer = plain.write.format("hudi").option("hoodie.datasource.write.operation", operation)
        writer.options(**options).mode("append").save(path)
    loaded = spark.read.format("hudi").load(path).drop("_hoodie_commit_time")
    assert loaded.where("n = 5").select(pyhudi.read_blob("b")).collect() == [(b"five",)] * 2
    copy = str(tmp_path / "copy")
    marked = plain.select("id", sf.col("b").alias("b", metadata={"hudi_type": "BLOB"}))
    marked.write.format("hudi").options(**options).mode("append").save(copy)
    loaded.where("n < 5").select("id", "b").write.format("hudi").options(**options).mode("append").save(copy)
    assert HudiTable.for_path(copy).schema.field("b").type == BLOB
    assert HudiTable.for_path(copy).scan().count() == 5
    wrong = marked.select("id", sf.lit(b"x").alias("b", metadata={"hudi_type": "BLOB"}))
    with pytest.raises(SchemaError, match="'b' is a BLOB, whose type is STRUCT"):
        wrong.write.format("hudi").options(**options).mode("append").save(str(tmp_path / "other"))
    with pytest.raises(SchemaMismatchError, match="'b' is BLOB in the table and binary in the incoming rows"):
        plain.withColumn("b", sf.lit(b"x")).write.format("hudi").options(**options).mode("append").save(path)


def test_declarations(spark, tmp_path):
    path, _ = create(spark, tmp_path)
    spark.sql("ALTER TABLE t ADD COLUMNS (z BLOB)")
    spark.sql(f"INSERT INTO t (id, n, z) VALUES ('z', 7, {inline('zz')})")
    assert rows(spark, "SELECT read_blob(z) FROM t WHERE id IN ('a', 'z') ORDER BY id") == [(None,), (b"zz",)]
    assert HudiTable.for_path(path).schema.field("z").type == BLOB
    spark.sql("CREATE TABLE similar LIKE t")
    assert spark.table("similar").schema["b"].metadata == {"comment": "bytes", "hudi_type": "BLOB"}
    assert "\n  b BLOB COMMENT 'bytes',\n" in spark.sql("SHOW CREATE TABLE t").first()[0]
    orc = "TBLPROPERTIES ('hoodie.table.base.file.format' = 'ORC')"
    with pytest.raises(UnsupportedTableError, match="'b' is a BLOB, which ORC files cannot have"):
        spark.sql(f"CREATE TABLE other (id STRING, b BLOB) USING hudi {orc}")
    for kind in ("ARRAY<BLOB>", "MAP<STRING, STRUCT<x: BLOB>>"):
        with pytest.raises(UnsupportedTableError, match="BLOB is not supported inside of arrays and maps"):
            spark.sql(f"CREATE TABLE other (id STRING, v {kind}) USING hudi")


def test_blobs_inside_of_structs(spark, tmp_path):
    path, container = str(tmp_path / "t"), tmp_path / "container.bin"
    container.write_bytes(bytes(range(256)))
    spark.sql(
        "CREATE TABLE t (id STRING, s STRUCT<n: INT, b: BLOB COMMENT 'bytes'>) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', type = 'mor') LOCATION '{path}'"
    )
    field = spark.table("t").schema["s"].dataType["b"]
    assert field.dataType.simpleString() == STRUCT
    assert field.metadata["hudi_type"] == "BLOB"
    assert HudiTable.for_path(path).schema.field("s").type.field("b").type == BLOB
    spark.sql(
        f"INSERT INTO t VALUES ('a', named_struct('n', 1, 'b', {inline('one')})), "
        f"('b', named_struct('n', 2, 'b', {reference(container, 10, 4)})), ('c', null)"
    )
    spark.sql(f"UPDATE t SET s.b = {inline('two')} WHERE id = 'a'")
    expected = [("a", b"two"), ("b", bytes(range(10, 14))), ("c", None)]
    assert rows(spark, "SELECT id, read_blob(s.b) FROM t ORDER BY id") == expected
    spark.sql("CREATE TABLE similar LIKE t")
    assert spark.table("similar").schema["s"].dataType["b"].metadata == {"hudi_type": "BLOB"}
    assert "\n  s STRUCT<`n`: INT, `b`: BLOB>)\n" in spark.sql("SHOW CREATE TABLE t").first()[0]
    spark.sql("ALTER TABLE t ADD COLUMNS (z STRUCT<b: BLOB>)")
    spark.sql(f"INSERT INTO t VALUES ('z', null, named_struct('b', {inline('zz')}))")
    assert rows(spark, "SELECT read_blob(z.b) FROM t WHERE id >= 'c' ORDER BY id") == [(None,), (b"zz",)]
    assert HudiTable.for_path(path).schema.field("z").type.field("b").type == BLOB
    wrong = "named_struct('type', 'BLA', 'data', X'01', 'reference', null)"
    with pytest.raises(SchemaMismatchError, match=r"'s.b' is a BLOB, but the field 'type' of a value is 'BLA'"):
        spark.sql(f"INSERT INTO t VALUES ('x', named_struct('n', 1, 'b', {wrong}), null)")


def test_blobs_in_merged_logs(spark, tmp_path):
    """Merged log rows are cached in files, also where blobs are null."""
    create(spark, tmp_path, "mor")
    spark.sql(f"UPDATE t SET n = n + 10, c = {inline('x')} WHERE id IN ('c', 'd')")
    expected = [("a", b"one", None), ("c", None, b"x"), ("d", None, b"x")]
    query = "SELECT id, read_blob(b), read_blob(c) FROM t WHERE id IN ('a', 'c', 'd') ORDER BY id"
    found = [(key, b if key == "a" else None, c) for key, b, c in rows(spark, query)]
    assert found == expected
