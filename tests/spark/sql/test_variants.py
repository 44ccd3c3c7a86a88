"""Columns of the type VARIANT: of Spark's type from Spark 4 on, structs before."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as sf

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import SchemaMismatchError, UnsupportedTableError
from pyhudi.schema.logical_types.variants import VARIANT
from pyhudi.spark.spark_types import HAS_VARIANTS
from tests.cases import seldom
from tests.spark.sql.ride_tables import rows_in_order as rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")

STRUCT = "struct<value:binary,metadata:binary>"
ONE = "named_struct('value', X'0c01', 'metadata', X'010000')"
TWO = "named_struct('metadata', X'010000', 'value', X'0c02')"


def create(spark, tmp_path, kind):
    path = str(tmp_path / kind)
    spark.sql(
        "CREATE TABLE t (id STRING, v VARIANT COMMENT 'any', n INT) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', type = '{kind}') LOCATION '{path}'"
    )
    assert HudiTable.for_path(path).schema.field("v").type == VARIANT
    assert "\n  v VARIANT COMMENT 'any',\n" in spark.sql("SHOW CREATE TABLE t").first()[0]
    return path


@pytest.mark.skipif(not HAS_VARIANTS, reason="Spark 3 has no variants")
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_variants(spark, tmp_path, kind):
    path = create(spark, tmp_path, kind)
    assert spark.table("t").schema["v"].dataType.simpleString() == "variant"
    spark.sql(
        """INSERT INTO t VALUES ('a', parse_json('{"x": 1, "l": [1, 2]}'), 1), ('b', null, 2),
        ('c', parse_json('"text"'), 3)"""
    )
    spark.sql("UPDATE t SET v = parse_json('[5]'), n = 20 WHERE id = 'b'")
    spark.sql("UPDATE t SET n = 30 WHERE id = 'c'")
    spark.sql(
        "MERGE INTO t USING (SELECT 'd' AS id, parse_json('true') AS v, 4 AS n) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    expected = [("a", '{"l":[1,2],"x":1}', 1), ("b", "[5]", 20), ("c", '"text"', 30), ("d", "true", 4)]
    query = "SELECT id, to_json(v), n FROM t ORDER BY id"
    assert rows(spark, query) == expected
    assert rows(spark, "SELECT id FROM t WHERE variant_get(v, '$.x', 'int') = 1") == [("a",)]
    if kind == "mor":
        HudiTable.for_path(path).services.compact()
        assert rows(spark, query) == expected
    HudiTable.for_path(path).services.cluster()
    assert rows(spark, query) == expected
    loaded = spark.read.format("hudi").load(path)
    copy = str(tmp_path / "copy")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    loaded.select("id", "v").write.format("hudi").options(**options).mode("append").save(copy)
    assert HudiTable.for_path(copy).schema.field("v").type == VARIANT
    structs = spark.sql(f"SELECT 'e' AS id, {ONE} AS v, 5 AS n")
    structs.write.format("hudi").options(**options).mode("append").save(path)
    assert rows(spark, "SELECT to_json(v) FROM t WHERE id = 'e'") == [("1",)]
    spark.sql("ALTER TABLE t ADD COLUMNS (l ARRAY<VARIANT>)")
    spark.sql("INSERT INTO t (id, n, l) VALUES ('f', 6, array(parse_json('1'), null))")
    assert rows(spark, "SELECT to_json(l[0]), l[1] FROM t WHERE id = 'f'") == [("1", None)]


@pytest.mark.skipif(HAS_VARIANTS, reason="Spark has variants")
@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
def test_structs(spark, tmp_path, kind):
    path = create(spark, tmp_path, kind)
    field = spark.table("t").schema["v"]
    assert (field.dataType.simpleString(), field.metadata) == (STRUCT, {"hudi_type": "VARIANT", "comment": "any"})
    spark.sql(f"INSERT INTO t VALUES ('a', {ONE}, 1), ('b', null, 2)")
    spark.sql("UPDATE t SET n = 10 WHERE id = 'a'")
    spark.sql(f"UPDATE t SET v = {TWO} WHERE id = 'b'")
    expected = [("a", (b"\x0c\x01", b"\x01\x00\x00"), 10), ("b", (b"\x0c\x02", b"\x01\x00\x00"), 2)]
    assert rows(spark, "SELECT id, v, n FROM t ORDER BY id") == expected
    if kind == "mor":
        HudiTable.for_path(path).services.compact()
    HudiTable.for_path(path).services.cluster()
    assert rows(spark, "SELECT id, v, n FROM t ORDER BY id") == expected
    copy = str(tmp_path / "copy")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    marked = spark.sql(f"SELECT 'e' AS id, {ONE} AS v, 5 AS n")
    marked = marked.withColumn("v", sf.col("v").alias("v", metadata={"hudi_type": "VARIANT"}))
    marked.write.format("hudi").options(**options).mode("append").save(copy)
    spark.read.format("hudi").load(path).write.format("hudi").options(**options).mode("append").save(copy)
    assert HudiTable.for_path(copy).schema.field("v").type == VARIANT
    with pytest.raises(SchemaMismatchError, match="'v' is VARIANT in the table and string in the incoming rows"):
        marked.withColumn("v", sf.lit("1")).write.format("hudi").options(**options).mode("append").save(path)


def test_refused(spark):
    orc = "TBLPROPERTIES ('hoodie.table.base.file.format' = 'ORC')"
    with pytest.raises(UnsupportedTableError, match="'v' is a VARIANT, which ORC files cannot have"):
        spark.sql(f"CREATE TABLE other (id STRING, v VARIANT) USING hudi {orc}")
    if not HAS_VARIANTS:
        with pytest.raises(UnsupportedTableError, match="VARIANT is not supported inside of structs, arrays and maps"):
            spark.sql("CREATE TABLE other (id STRING, v ARRAY<VARIANT>) USING hudi")
