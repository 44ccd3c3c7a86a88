"""Columns of the type VECTOR on Spark: declared, written, read and searched."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError, SchemaError, SchemaMismatchError, UnsupportedTableError
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from tests.cases import seldom
from tests.spark.sql.ride_tables import rows_in_order as rows

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")

COLUMNS = "id STRING, v VECTOR(3), d VECTOR(2, DOUBLE) COMMENT 'doubles', b VECTOR(2, INT8), n INT"
FIRST = [
    ("a", [1.0, 2.0, 3.0], [0.5, 1.5], [1, -4], 1),
    ("b", None, None, None, 2),
    ("c", [9, 9, 9], [1, 1], [0, 1], 3),
]


def ids(spark, query, **given):
    return [row[0] for row in rows(spark, query, **given)]


def create(spark, tmp_path, kind="cow"):
    path = str(tmp_path / kind)
    spark.sql(
        f"CREATE TABLE t ({COLUMNS}) USING hudi TBLPROPERTIES (primaryKey = 'id', type = '{kind}') LOCATION '{path}'"
    )
    spark.sql(
        "INSERT INTO t VALUES ('a', array(1.0, 2.0, 3.0), array(0.5D, 1.5D), array(1, -4), 1), "
        "('b', null, null, null, 2), ('c', CAST(array(9, 9, 9) AS ARRAY<FLOAT>), array(1, 1), array(0Y, 1Y), 3)"
    )
    return path


@pytest.mark.parametrize("kind", [seldom("cow"), "mor"])
def test_statements(spark, tmp_path, kind):
    path = create(spark, tmp_path, kind)
    own = "SELECT id, v, d, b, n FROM t ORDER BY id"
    assert rows(spark, own) == FIRST
    field = spark.table("t").schema["d"]
    assert field.dataType.simpleString() == "array<double>"
    assert not field.dataType.containsNull
    assert field.metadata == {"hudi_type": "VECTOR(2, DOUBLE)", "comment": "doubles"}
    assert ("b", "array<tinyint>", None) in rows(spark, "DESCRIBE t")
    for values, message in (
        ("array(1.0, 2.0), null, null", "but a value has 2 elements; write 3"),
        ("array(1.0, null, 2.0), null, null", "an element of a value is null"),
    ):
        with pytest.raises(SchemaMismatchError, match=message):
            spark.sql(f"INSERT INTO t VALUES ('x', {values}, 1)")
    spark.sql("UPDATE t SET v = array(float('nan'), 0.1, 3.0) WHERE id = 'c'")
    spark.sql(
        "MERGE INTO t USING (SELECT 'd' AS id, array(4F, 5F, 6F) AS v, array(2D, 2D) AS d, array(3Y, 3Y) AS b, 4 AS n "
        "UNION ALL SELECT 'a', array(1F, 1F, 1F), null, null, 5) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v, n = s.n WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("DELETE FROM t WHERE id = 'b'")
    table = HudiTable.for_path(path)
    if kind == "mor":
        assert len({str(rows(spark, own)) for _ in range(3)}) == 1  # the second query writes the merged rows to a cache
        table.services.compact()
    (a, c, d) = rows(spark, own)
    assert a == ("a", [1.0, 1.0, 1.0], [0.5, 1.5], [1, -4], 5)
    assert math.isnan(c[1][0])
    assert c[1][1:] == [pytest.approx(0.1), 3.0]
    assert d == ("d", [4.0, 5.0, 6.0], [2.0, 2.0], [3, 3], 4)
    table.services.cluster()
    assert rows(spark, own)[::2] == [a, d]
    assert table.schema.field("v").type == pa.list_(pa.float32(), 3)
    oldest = table.history()["requested"].to_pylist()[-1]
    assert rows(spark, f"SELECT v FROM t VERSION AS OF '{oldest}' WHERE id = 'a'") == [([1.0, 2.0, 3.0],)]
    changes = spark.sql("SELECT id, v FROM hudi_table_changes('t', 'latest_state', 'earliest') WHERE n = 4").collect()
    assert [tuple(row) for row in changes] == [("d", [4.0, 5.0, 6.0])]


def test_dataframes(spark, tmp_path):
    path = create(spark, tmp_path)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    plain = spark.createDataFrame(
        [("e", [1.0, 0.0, 0.0], [1.0, 2.0], [7, 7], 9)],
        "id string, v array<float>, d array<double>, b array<tinyint>, n int",
    )
    for operation in ("upsert", "bulk_insert"):
        writer = plain.write.format("hudi").option("hoodie.datasource.write.operation", operation)
        writer.options(**options).mode("append").save(path)
    loaded = spark.read.format("hudi").load(path).drop("_hoodie_commit_time")
    assert loaded.where("n = 9").select("id", "b").collect() == [("e", [7, 7])] * 2
    copy = str(tmp_path / "copy")
    loaded.where("n < 9").select("id", "v", "n").write.format("hudi").options(**options).mode("append").save(copy)
    assert HudiTable.for_path(copy).schema.field("v").type == HudiTable.for_path(path).schema.field("v").type
    doubles = plain.withColumn("v", plain["v"].cast("array<double>"))
    with pytest.raises(SchemaMismatchError, match=r"'v' is VECTOR\(3\) in the table and list<.*cast its elements"):
        doubles.write.format("hudi").options(**options).mode("append").save(path)


def test_refused_declarations(spark):
    for kind, error, message in (
        ("VECTOR", SchemaError, "not a valid type"),
        ("VECTOR(0)", SchemaError, "at least 1"),
        ("VECTOR(3, INT)", SchemaError, "FLOAT, DOUBLE or INT8"),
        ("ARRAY<VECTOR(3)>", UnsupportedTableError, "not supported inside of structs, arrays and maps"),
    ):
        with pytest.raises(error, match=message):
            spark.sql(f"CREATE TABLE other (id STRING, v {kind}) USING hudi")


def test_refused_tables(spark, tmp_path):
    for key, value, message in (
        ("hoodie.table.base.file.format", "ORC", "ORC files cannot"),
        ("hoodie.table.cdc.enabled", "true", "logs of changes cannot"),
    ):
        with pytest.raises(UnsupportedTableError, match=f"'v' is a VECTOR.*{message}"):
            spark.sql(f"CREATE TABLE other (id STRING, v VECTOR(3)) USING hudi TBLPROPERTIES ('{key}' = '{value}')")
        options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id", key: value}
        rows = spark.createDataFrame([("a", [1.0, 2.0])], "id string, v array<float>")
        vectors = rows.withMetadata("v", {"hudi_type": "VECTOR(2)"})
        with pytest.raises(UnsupportedTableError, match=message):
            vectors.write.format("hudi").options(**options).save(str(tmp_path / "other"))


def test_search(spark, tmp_path):
    path = create(spark, tmp_path)
    search = "SELECT id FROM hudi_vector_search({})"
    for arguments in (
        "'t', 'v', array(1.0, 2.0, 3.0), 2",
        f"'{path}', 'V', -- by path\n array(1, 2, 3), 1 + 1, 'COSINE', 'brute_force'",
        "'shop.t', 'v', (SELECT v FROM t WHERE id = 'a'), k => 2, metric => 'l2'",
    ):
        assert ids(spark, search.format(arguments)) == ["a", "c"]
    assert ids(spark, search.format("'t', 'v', array(1.0, 2.0, 3.0), 2, 'dot_product'")) == ["c", "a"]
    assert ids(spark, search.format("'t', 'b', array(1, -4), :k"), args={"k": 1}) == ["a"]
    found = spark.sql("SELECT * FROM hudi_vector_search('t', 'v', array(1.0, 2.0, 3.0), 9) AS s WHERE s.n < 3")
    assert found.columns[-5:] == ["id", "d", "b", "n", "_hudi_distance"]
    assert [(row.id, row._hudi_distance) for row in found.collect()] == [("a", pytest.approx(0))]
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW q AS SELECT 'q1' AS name, array(1F, 2F, 3F) AS w, 1 AS n")
    batch = spark.sql("SELECT * FROM hudi_vector_search_batch('t', 'v', 'q', 'w', 2, 'l2')")
    assert batch.columns[-7:] == ["d", "b", "n", "name", "_hudi_query_n", "_hudi_query_index", "_hudi_distance"]
    distance = pytest.approx(math.sqrt(64 + 49 + 36))
    assert rows(
        spark, "SELECT id, name, _hudi_distance FROM hudi_vector_search_batch('t', 'v', 'q', 'w', 2, 'l2')"
    ) == [
        ("a", "q1", 0.0),
        ("c", "q1", distance),
    ]
    nearest = search.format("'t', 'v', array(1.0, 2.0, 3.0), 2")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW two AS {nearest}")
    spark.sql("USE default")
    try:
        assert ids(spark, "SELECT id FROM two") == ["a", "c"]
    finally:
        spark.sql("USE shop")
    assert rewrite_query(spark, nearest).locations == {find_table(spark, ("t",)).location}
    for arguments, message in (
        ("'t', 'v', array(1.0, 2.0), 2", r"has 2 numbers, but column 'v' is a VECTOR\(3\)"),
        ("'t', 'v', array(1.0, null, 2.0), 2", "no number at position 1"),
        ("'t', 'n', array(1.0), 2", "a search needs a column of the type VECTOR"),
        ("'t', 'v', array(1.0, 2.0, 3.0), 0", "positive integer"),
        ("'t', 'v', array(1.0, 2.0, 3.0), 1, 'l1'", "no distance metric 'l1'"),
        ("'t', 'v', array(1.0, 2.0, 3.0), 1, 'l2', 'hnsw'", "no search algorithm 'hnsw'"),
        ("'t', 'v'", "needs a value for query_vector"),
        ("'t', 'v', array(1.0), 1, 'l2', 'brute_force', 'n > 1'", "has no parameter for 'n > 1'"),
    ):
        with pytest.raises(QueryError, match=message):
            spark.sql(search.format(arguments))
    with pytest.raises(QueryError, match="name it, as :query"):
        spark.sql(search.format("'t', 'v', ?, 2"), args=[[1.0, 2.0, 3.0]])
    table = HudiTable.for_path(path)
    frame = table.vector_search([1, 2, 3], "v", 5, filter="n > 1", columns=["id"]).to_spark(spark)
    assert [row.id for row in frame.collect()] == ["c"]
    # vectors are decoded only where a query asks for them
    plan = spark.sql("EXPLAIN SELECT id FROM t WHERE n > 1").first()[0]
    assert "ArrowEvalPython" not in plan
    assert "GreaterThan(n,1)" in plan
