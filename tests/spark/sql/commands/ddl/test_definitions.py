"""CREATE and REPLACE TABLE, and statements on views that name a Hudi table."""

from __future__ import annotations

import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyhudi import HudiTable
from pyhudi.errors import (
    ConfigError,
    OptionWithoutEffectWarning,
    QueryError,
    SchemaMismatchError,
    SqlSyntaxError,
    TableConfigConflictError,
    TableExistsError,
    UnknownOptionWarning,
    UnsupportedTableError,
)
from pyhudi.schema.meta_fields import META_COLUMNS
from pyhudi.spark.sql.catalog import find_table
from pyhudi.spark.sql.commands.ddl.create_table import creation_lock
from tests.cases import IN_CONNECT

pytest.importorskip("sqlglot")
pytestmark = pytest.mark.usefixtures("database")


def rows(spark, query, **parameters):
    return sorted(tuple(row) for row in spark.sql(query, **parameters).collect())


def test_like_takes_the_format_of_the_source_and_options_may_have_the_path(spark, tmp_path):
    spark.sql("CREATE TABLE plain (id INT) USING parquet")
    spark.sql("CREATE TABLE plainer LIKE plain")
    spark.sql("INSERT INTO plainer VALUES (1)")
    assert find_table(spark, ("plainer",)) is None
    spark.sql(f"CREATE TABLE t (id INT) USING hudi OPTIONS (primaryKey 'id', path '{tmp_path}/t')")
    assert HudiTable.exists(str(tmp_path / "t"))
    assert not find_table(spark, ("t",)).managed
    spark.sql("CREATE TABLE like_t LIKE t")
    assert find_table(spark, ("like_t",)).properties["primaryKey"] == "id"
    shutil.rmtree(tmp_path / "t")
    assert "id" in [column.name for column in spark.catalog.listColumns("t")]
    spark.range(2).write.format("hudi").mode("ignore").saveAsTable("plain")
    with pytest.raises(TableExistsError, match="not a Hudi table"):
        spark.range(2).write.format("hudi").mode("append").saveAsTable("plain")


@pytest.mark.parametrize("source", ["hudi TBLPROPERTIES (primaryKey = 'id')", "parquet"])
def test_like_keeps_comments(spark, source):
    spark.sql(f"CREATE TABLE t (id INT COMMENT 'the \\'id\\'', v STRING) USING {source}")
    spark.sql("CREATE TABLE like_t LIKE t USING hudi TBLPROPERTIES (primaryKey = 'id')")
    comments = {row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE like_t").collect()}
    assert (comments["id"], comments["v"]) == ("the 'id'", None)


def test_statements_on_views_do_not_take_hudi_tables(spark):
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    for statement in (
        "CREATE OR REPLACE VIEW t AS SELECT 1 AS id",
        "DROP VIEW t",
        "DROP VIEW IF EXISTS shop.t",
        "ALTER VIEW t AS SELECT 1",
    ):
        with pytest.raises(QueryError, match=r"Hudi table, and no view.*TABLE"):
            spark.sql(statement)
    assert find_table(spark, ("t",)) is not None
    spark.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM t")
    spark.sql("ALTER VIEW v AS SELECT id + 1 AS id FROM t")
    spark.sql("CREATE TEMP VIEW t AS SELECT 5 AS id")
    with pytest.raises(QueryError, match="Hudi table, and no view"):
        spark.sql("CREATE OR REPLACE VIEW shop.t AS SELECT 1 AS id")
    assert rows(spark, "SELECT id FROM t") == [(5,)]
    spark.catalog.dropTempView("t")  # which is known as a view by now
    assert rows(spark, "SELECT id FROM t") == []
    spark.sql("CREATE TEMP VIEW t AS SELECT 5 AS id")
    spark.sql("DROP VIEW t")  # the temporary one
    assert rows(spark, "SELECT id FROM t") == rows(spark, "SELECT id FROM v") == []
    spark.sql("DROP VIEW IF EXISTS v")
    spark.sql("CREATE TABLE hudi (id INT) USING hudi")
    spark.sql("CREATE VIEW v AS SELECT id FROM hudi")
    assert rows(spark, "SELECT id FROM v") == []


def test_a_replaced_table_is_what_the_statement_says(spark, tmp_path):
    spark.sql("CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey = 'id', type = 'mor', note = 'x') AS SELECT 1 AS id")
    managed = find_table(spark, ("t",)).location
    spark.sql("CREATE OR REPLACE TABLE t USING hudi AS SELECT id + 1 AS id FROM t")
    table = find_table(spark, ("t",))
    assert (table.location, table.managed, table.properties) == (managed, True, {})
    config = HudiTable.for_path(managed).config
    assert (config.record_keys, str(config.table_type)) == ((), "COPY_ON_WRITE")
    spark.sql(f"CREATE OR REPLACE TABLE t USING hudi LOCATION '{tmp_path}/a' AS SELECT id + 1 AS id FROM t")
    assert rows(spark, "SELECT id FROM t") == [(3,)]
    assert find_table(spark, ("t",)).location == f"{tmp_path}/a"
    assert not HudiTable.exists(managed)
    frame = spark.createDataFrame([(4,)], "id int")
    frame.write.saveAsTable("t", "hudi", "overwrite", path=str(tmp_path / "b"))
    assert HudiTable.exists(str(tmp_path / "a"))
    assert find_table(spark, ("t",)).location == f"{tmp_path}/b"
    with pytest.raises(TableExistsError, match="would overwrite"):
        spark.sql(f"CREATE OR REPLACE TABLE t USING hudi LOCATION '{tmp_path}/a' AS SELECT 5 AS id")
    frame.write.mode("overwrite").saveAsTable("t")  # without a path the table stays where it is
    assert find_table(spark, ("t",)).location == f"{tmp_path}/b"
    assert rows(spark, "SELECT id FROM t") == [(4,)]


def test_columns_of_properties_are_those_of_the_table(spark):
    declared = "CREATE TABLE t (id INT, ts INT, s STRUCT<x: INT>, day STRING) USING hudi "
    for more, near in (
        ("TBLPROPERTIES (primaryKey = 'idd')", "did you mean 'id'"),
        ("TBLPROPERTIES (primaryKey = 'id', preCombineField = 'at')", "no column 'at'"),
        ("TBLPROPERTIES (primaryKey = 'id,s.y')", "'s' has no field 'y'"),
        ("PARTITIONED BY (days)", "did you mean 'day'"),
        ("TBLPROPERTIES ('hoodie.datasource.write.partitionpath.field' = 'days')", "did you mean 'day'"),
    ):
        with pytest.raises(SchemaMismatchError, match=near):
            spark.sql(declared + more)
    spark.sql(declared + "TBLPROPERTIES (primaryKey = 'ID, S.X', preCombineField = 'TS') PARTITIONED BY (DAY)")
    spark.sql("INSERT INTO t VALUES (1, 1, named_struct('x', 7), 'mon'), (1, 2, named_struct('x', 7), 'mon')")
    table = find_table(spark, ("t",))
    assert table.properties == {"primaryKey": "id,s.x", "preCombineField": "ts"}
    config = HudiTable.for_path(table.location).config
    assert (config.record_keys, config.ordering_fields) == (("id", "s.x"), ("ts",))
    assert [field.name for field in config.partition_fields] == ["day"]
    aliases = {
        "hoodie.table.recordkey.fields": "ID",
        "Hoodie.Table.Precombine.Field": "TS",
        "hoodie.datasource.write.partitionpath.field": "DAY",
    }
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in aliases.items())
    spark.sql(declared.replace("TABLE t ", "TABLE u ") + f"TBLPROPERTIES ({properties})")
    config = HudiTable.for_path(find_table(spark, ("u",)).location).config
    assert (config.record_keys, config.ordering_fields) == (("id",), ("ts",))
    assert [field.name for field in config.partition_fields] == ["day"]
    spark.sql("DROP TABLE u")


def test_threads_that_create_one_table_take_turns(spark):
    statement = "CREATE TABLE IF NOT EXISTS t (id INT) USING hudi TBLPROPERTIES (primaryKey = 'id')"
    frame = spark.createDataFrame([(1,)], "id int")

    def save(number):
        rows = frame.selectExpr(f"{number} AS id").write.format("hudi")
        rows.option("primaryKey", "id").mode("append").saveAsTable("saved")

    frame.createOrReplaceTempView("saved")  # is no table
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: spark.sql(statement), range(3)))
        list(pool.map(save, range(3)))
    table = find_table(spark, ("t",))
    assert table.properties == {"primaryKey": "id"}
    assert rows(spark, "SELECT id FROM shop.saved") == [(0,), (1,), (2,)]
    with ThreadPoolExecutor(1) as pool, creation_lock(spark, table.location, {}):
        pool.submit(spark.sql, statement).result(60)  # does not wait for those that write to it


def test_no_two_managed_tables_have_one_folder(spark):
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    location = find_table(spark, ("t",)).location
    spark.sql("ALTER TABLE t RENAME TO u")
    for columns in ("", "(id INT)"):
        with pytest.raises(TableExistsError, match=r"its name is 'u'.*LOCATION"):
            spark.sql(f"CREATE TABLE t {columns} USING hudi")
    spark.sql("INSERT INTO u VALUES (1)")
    assert rows(spark, "SELECT id FROM u") == [(1,)]
    spark.sql("DROP TABLE u")
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    assert find_table(spark, ("t",)).location == location


def test_a_replaced_table_is_not_deleted_at_its_new_location(spark, tmp_path):
    spark.sql("CREATE TABLE t USING hudi AS SELECT 1 AS id")
    managed = find_table(spark, ("t",)).location.removeprefix("file:")
    (tmp_path / "link").symlink_to(managed)
    (tmp_path / "above").symlink_to(f"{managed}/..")
    for place in (tmp_path / "link", tmp_path / "above" / "t", tmp_path / "above", f"{managed}/inner"):
        for query in ("", "(id INT)", "AS SELECT 2 AS id"):
            columns, query = (query, "") if query[:1] == "(" else ("", query)
            with pytest.raises(TableExistsError, match="which replacing the table deletes"):
                spark.sql(f"CREATE OR REPLACE TABLE t {columns} USING hudi LOCATION '{place}' {query}")
    assert rows(spark, "SELECT id FROM t") == [(1,)]
    spark.sql(f"CREATE OR REPLACE TABLE t USING hudi LOCATION '{managed}' AS SELECT 2 AS id")
    assert rows(spark, "SELECT id FROM t") == [(2,)]


def test_statements_do_not_make_their_session_the_active_one(spark):
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    spark.createDataFrame([], "id int")  # its session is the active one now
    other = spark.newSession()
    other.conf.set("spark.other", "true")
    assert other.sql("ALTER TABLE shop.t SET TBLPROPERTIES (note = 'x')").columns == []
    assert type(spark).getActiveSession().conf.get("spark.other", None) is None


def test_columns_and_places_as_spark_understands_them(spark):
    spark.sql("CREATE TABLE t (id INT NOT NULL, n VARCHAR(3), c CHAR(4)) USING hudi LOCATION 'rel/t'")
    folder = spark.catalog.getDatabase("shop").locationUri
    assert find_table(spark, ("t",)).location == f"{folder}/rel/t"
    spark.sql("INSERT INTO t VALUES (1, 'a', 'b')")
    assert rows(spark, "SELECT id, n, c FROM t") == [(1, "a", "b")]
    with pytest.raises(QueryError, match="is empty"):
        spark.sql("CREATE TABLE u (id INT) USING hudi LOCATION ''")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatchError, match="'a' and 'A' differ only in case"):
            spark.sql("CREATE TABLE u (a INT, A INT) USING hudi")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert not spark.catalog.tableExists("u")


def test_tables_of_the_catalog_api_and_views_of_paths(spark, tmp_path):
    schema = StructType(
        [StructField("id", LongType(), False), StructField("p", StringType(), metadata={"comment": "x"})]
    )
    options = {"primaryKey": "id", "hoodie.datasource.write.partitionpath.field": "p"}
    made = spark.catalog.createTable("t", str(tmp_path / "t"), "hudi", schema, "of rides", **options)
    assert made.columns[-2:] == ["id", "p"]
    spark.createDataFrame([(1, "a")], "id BIGINT, p STRING").write.insertInto("t")
    assert rows(spark, "SELECT id, p FROM t") == [(1, "a")]
    assert spark.catalog.getTable("t").description == "of rides"
    spark.catalog.createTable("again", str(tmp_path / "t"), "hudi")
    assert rows(spark, "SELECT id, p FROM again") == [(1, "a")]
    spark.sql(f"CREATE TEMPORARY VIEW of_path USING hudi OPTIONS (path '{tmp_path}/t')")
    loaded = spark.read.format("hudi").load(str(tmp_path / "t"))
    loaded.createOrReplaceTempView("of_frame")
    loaded.selectExpr("id", "upper(p) AS p").createOrReplaceTempView("derived")
    spark.sql("INSERT INTO t VALUES (2, 'b')")
    assert rows(spark, "SELECT id, p FROM of_path") == [(1, "a"), (2, "b")]
    assert rows(spark, "SELECT id, p FROM of_frame") == [(1, "a")]
    spark.sql("REFRESH TABLE of_frame")
    assert rows(spark, "SELECT id, p FROM of_frame") == [(1, "a"), (2, "b")]
    with pytest.warns(UserWarning, match="REFRESH TABLE has no effect on 'derived'"):
        spark.catalog.refreshTable("derived")
    loaded.createOrReplaceTempView("of_frame")
    spark.catalog.refreshTable("of_frame")
    assert rows(spark, "SELECT id, p FROM of_frame") == [(1, "a"), (2, "b")]


def test_methods_of_the_catalog_that_are_statements(spark):
    """Most are of Spark 4.2."""
    spark.sql("CREATE TABLE t (id INT, day STRING) USING hudi TBLPROPERTIES (primaryKey = 'id') PARTITIONED BY (day)")
    spark.sql("INSERT INTO t VALUES (1, 'mon')")
    spark.sql("CREATE VIEW v AS SELECT * FROM t")
    catalog = spark.catalog
    catalog.recoverPartitions("t")
    assert catalog.tableExists("t")
    assert not catalog.isCached("shop.t")
    if not hasattr(catalog, "listPartitions"):
        return
    assert [one.partition for one in catalog.listPartitions("t")] == ["day=mon"]
    assert catalog.getTableProperties("shop.t")["primaryKey"] == "id"
    assert catalog.getCreateTableString("t").startswith("CREATE TABLE spark_catalog.shop.t")
    assert [one.name for one in catalog.listViews("shop")] == ["v"]
    with pytest.raises(UnsupportedTableError, match="ANALYZE TABLE"):
        catalog.analyzeTable("t")
    with pytest.raises(QueryError, match="use DROP TABLE"):
        catalog.dropView("t")
    catalog.truncateTable("t")
    assert spark.table("v").count() == 0
    catalog.dropView("v")
    catalog.dropTable("t", purge=True)
    assert catalog.listTables() == []


def test_what_writes_and_reads_by_name_would_ignore_is_refused(spark):
    spark.sql("CREATE TABLE t (id BIGINT, p STRING) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey = 'id')")
    frame = spark.createDataFrame([(1, "a")], "id BIGINT, p STRING")
    with pytest.raises(QueryError, match="leave out partitionBy"):
        frame.write.partitionBy("p").insertInto("t")
    with pytest.raises(SchemaMismatchError, match=r"is partitioned by \(p\), not by \(id\)"):
        frame.write.mode("append").partitionBy("id").saveAsTable("t")
    frame.write.mode("append").partitionBy("p").saveAsTable("t")
    assert rows(spark, "SELECT id, p FROM t") == [(1, "a")]
    if not IN_CONNECT:  # which ignores the schema
        with pytest.raises(AnalysisException):
            spark.read.schema("id INT").table("t")
    spark.sql("CREATE TABLE u (id INT) USING hudi")
    with pytest.raises(QueryError, match="no partitions for the predicate"):
        spark.sql("CALL run_clustering(table => 'u', predicate => 'id > 0')")


def test_comments_stay_with_a_table_and_new_columns_are_nullable(spark):
    spark.sql("CREATE TABLE t (id INT) USING hudi COMMENT 'of rides' TBLPROPERTIES (primaryKey = 'id')")
    with pytest.warns(OptionWithoutEffectWarning, match="NOT NULL has no effect on the new column 'n'"):
        spark.sql("ALTER TABLE t ADD COLUMNS (n STRING NOT NULL)")
    assert spark.table("t").schema["n"].nullable
    assert spark.catalog.getTable("t").description == "of rides"


def test_columns_with_names_of_meta_columns(spark):
    """CREATE TABLE leaves them out, as Apache Hudi does: the table has its own."""
    spark.sql("CREATE TABLE t (_hoodie_record_key INT, id INT, _hoodie_commit_time INT) USING hudi")
    spark.sql("INSERT INTO t VALUES (1)")
    spark.sql("CREATE TABLE u USING hudi AS SELECT 'mine' AS _hoodie_commit_time, 1 AS id")
    for name in ("t", "u"):
        assert spark.table(name).columns == [*META_COLUMNS, "id"]
        assert rows(spark, f"SELECT id, length(_hoodie_commit_time) FROM {name}") == [(1, 17)]
    for name in ("_hoodie_file_name", "_HOODIE_FILE_NAME", "_hoodie_operation"):
        with pytest.raises(SchemaMismatchError, match=f"'{name}' is a meta column of Hudi tables"):
            spark.sql(f"ALTER TABLE t ADD COLUMNS (tip INT, {name} STRING)")
    with pytest.raises(AnalysisException, match="_hoodie_commit_time"):
        spark.sql("CREATE TABLE v (id INT, _HOODIE_COMMIT_TIME STRING) USING hudi")
    assert spark.table("t").columns == [*META_COLUMNS, "id"]


def test_columns_that_cannot_be_keys(spark):
    for properties in ("primaryKey = 'b'", "primaryKey = 'id', preCombineField = 'b.type'"):
        with pytest.raises(UnsupportedTableError, match=r"field 'b(\.type)?' is of a VECTOR, BLOB or VARIANT"):
            spark.sql(f"CREATE TABLE t (id INT, b BLOB) USING hudi TBLPROPERTIES ({properties})")


def test_partition_columns_that_files_lack(spark):
    """A timestamp would be a text from the second INSERT on, with another partition path."""
    rest = "PARTITIONED BY (at) TBLPROPERTIES ('hoodie.datasource.write.drop.partition.columns' = 'true')"
    for create in (f"(id INT, at TIMESTAMP) USING hudi {rest}", f"USING hudi {rest} AS SELECT 1 AS id, now() AS at"):
        with pytest.raises(SchemaMismatchError, match=r"'at' is timestamp.*cast it to a date, or to a number"):
            spark.sql(f"CREATE TABLE t {create}")
    assert not spark.catalog.tableExists("t")
    spark.sql(f"CREATE TABLE t (id INT, at DATE) USING hudi {rest}")
    for number in (1, 2):
        spark.sql(f"INSERT INTO t VALUES ({number}, date'2024-01-02')")
    assert rows(spark, "SELECT id, at FROM t") == [(1, "2024-01-02"), (2, "2024-01-02")]
    assert rows(spark, "SHOW PARTITIONS t") == [("at=2024-01-02",)]


@pytest.mark.parametrize("clause", ["DEFAULT 'x'", "GENERATED ALWAYS AS (upper('x'))"])
def test_columns_that_spark_would_have_to_compute_are_refused(spark, clause):
    with pytest.raises(UnsupportedTableError, match=f"the column 'n' cannot have .*{clause.split()[0]}"):
        spark.sql(f"CREATE TABLE t (id INT, n STRING {clause}) USING hudi")
    spark.sql("CREATE TABLE t (id INT) USING hudi")
    with pytest.raises((SqlSyntaxError, UnsupportedTableError), match=clause.split()[0]):
        spark.sql(f"ALTER TABLE t ADD COLUMNS (n STRING {clause})")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("id INT PRIMARY KEY, n STRING", r"TBLPROPERTIES \(primaryKey"),
        ("id INT, n STRING, CONSTRAINT k PRIMARY KEY (id)", r"TBLPROPERTIES \(primaryKey"),
        ("id INT, n INT, CONSTRAINT positive CHECK (n > 0)", "no constraints such as CHECK"),
        ("id INT UNIQUE", "no constraints such as UNIQUE"),
        ("id INT, n INT, UNIQUE (n)", "no constraints such as UNIQUE"),
    ],
)
def test_constraints_are_refused(spark, columns, reason):
    with pytest.raises(UnsupportedTableError, match=reason):
        spark.sql(f"CREATE TABLE t ({columns}) USING hudi")
    for other_error in ("unique INTT", "unique INT, check", "check STRING, references STRING, n INT NULL"):
        with pytest.raises(ParseException):
            spark.sql(f"CREATE TABLE t ({other_error}) USING hudi")
    assert not spark.catalog.tableExists("t")
    spark.sql("CREATE TABLE t (unique INT, check STRING) USING hudi")


def test_parameters_in_place_of_literals(spark):
    spark.sql(
        "CREATE TABLE t (id INT COMMENT :text, v DECIMAL(:digits, 2)) USING hudi COMMENT :text "
        "TBLPROPERTIES (primaryKey = :key, 'note' = :text)",
        args={"text": "it's", "digits": 9, "key": "id"},
    )
    assert [one.simpleString() for one in spark.table("t").schema[-2:]] == ["id:int", "v:decimal(9,2)"]
    assert spark.table("t").schema["id"].metadata["comment"] == "it's"
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('note' = ?)", args=["other"])
    spark.sql("COMMENT ON TABLE t IS :text", args={"text": "of rides"})
    assert spark.sql("SHOW TBLPROPERTIES t ('note')").first()["value"] == "other"
    assert spark.catalog.getTable("t").description == "of rides"
    spark.sql("INSERT INTO t VALUES (1, 2.5)")
    assert rows(spark, "SELECT _hoodie_record_key FROM t") == [("1",)]
    with pytest.raises(SqlSyntaxError):
        spark.sql("ALTER TABLE t SET TBLPROPERTIES ('note' = :texts)", args={"texts": [1]})


def test_comments_of_columns(spark):
    spark.sql("CREATE TABLE t (id INT, n STRING COMMENT 'old') USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql("ALTER TABLE t ALTER COLUMN id COMMENT 'the key', n COMMENT 'new'")
    assert [one.metadata.get("comment") for one in spark.table("t").schema[-2:]] == ["the key", "new"]
    spark.sql("COMMENT ON COLUMN shop.t.n IS 'newest'")
    spark.sql("COMMENT ON COLUMN t.id IS NULL")
    assert [one.metadata.get("comment") or "" for one in spark.table("t").schema[-2:]] == ["", "newest"]


@pytest.mark.skipif(not hasattr(StringType(), "collation"), reason="Spark has collations from version 4 on")
@pytest.mark.parametrize("kind", ["STRING COLLATE UTF8_LCASE", "MAP<STRING, ARRAY<STRING COLLATE UNICODE_CI>>"])
def test_collations_are_refused(spark, kind):
    with pytest.raises(UnsupportedTableError, match=r"the column 'n' cannot have .*collat.* into comparisons"):
        spark.sql(f"CREATE TABLE t (id INT, n {kind}) USING hudi")
    spark.sql("CREATE TABLE t (id INT, n STRING) USING hudi")
    with pytest.raises(UnsupportedTableError, match="the column 'm' cannot have"):
        spark.sql(f"ALTER TABLE t ADD COLUMNS (m {kind})")


def test_the_version_of_a_new_table(spark):
    table = "CREATE TABLE t{0} (id INT) USING hudi TBLPROPERTIES ('hoodie.{1}table.version' = '{0}')"
    for version in (6, 8, 9):
        spark.sql(table.format(version, "write."))
        path = spark.sql(f"SHOW TBLPROPERTIES t{version} ('path')").first()["value"]
        assert HudiTable.for_path(path).config.version == version
    with pytest.raises(ConfigError, match=r"set hoodie\.write\.table\.version"):
        spark.sql(table.format(7, ""))
    spark.sql(f"CREATE TABLE other USING hudi LOCATION '{path}' TBLPROPERTIES ('hoodie.table.version' = '9')")
    with pytest.raises(TableConfigConflictError, match=r"hoodie\.table\.version='8'"):
        spark.sql(f"CREATE TABLE another USING hudi LOCATION '{path}' TBLPROPERTIES ('hoodie.table.version' = '8')")


def test_a_table_is_made_again_from_what_is_shown(spark, tmp_path):
    spark.sql(
        """CREATE TABLE `select` (`Table` INT COMMENT 'it\\'s', `order` STRUCT<`From`: STRING, `by`: ARRAY<INT>>,
        `größe` DECIMAL(10, 2), `Partition` STRING) USING hudi PARTITIONED BY (`PARTITION`) COMMENT 'of words'
        TBLPROPERTIES (primaryKey = 'table', type = 'mor', note = 'a ''b')"""
    )
    spark.sql("INSERT INTO `SELECT` PARTITION (PARTITION = 'a b') (`TABLE`, `Order`) VALUES (1, ('x', array(2)))")
    spark.sql("UPDATE `select` SET `order`.`by` = array(3) WHERE `partition` = 'a b'")
    assert rows(spark, "SELECT `table`, `order`.`by`[0], `partition` FROM `select`") == [(1, 3, "a b")]

    described = spark.sql("DESCRIBE EXTENDED `select` PARTITION (partition = 'a b')").collect()
    assert ("Partition Values", "[Partition=a b]") in [tuple(row)[:2] for row in described]
    for database in ("", "IN shop"):
        statement = f"SHOW TABLE EXTENDED {database} LIKE 'SELECT' PARTITION (partition = :value)"
        [shown_partition] = rows(spark, statement, args={"value": "a b"})
        assert shown_partition[:3] == ("shop", "select", False)
        assert shown_partition[3].startswith("Partition Values: [Partition=a b]\nLocation: ")
        with pytest.raises(QueryError, match="no partition with partition ="):
            spark.sql(statement, args={"value": "b"})
    with pytest.raises(QueryError, match="no partition with partition ="):
        spark.sql("DESCRIBE `select` PARTITION (partition = 'b')")

    def shown():
        statements = ("SHOW CREATE TABLE `select`", "DESCRIBE EXTENDED `select`", "SHOW TBLPROPERTIES `select`")
        listed = next(table for table in spark.catalog.listTables() if table.name == "select")
        return [*(spark.sql(statement).collect() for statement in statements), listed]

    before = shown()
    spark.sql("DROP TABLE `select`")
    spark.sql(before[0][0][0])
    assert shown() == before
    assert rows(spark, "SELECT `table` FROM `select`") == []
    spark.sql(f"CREATE TABLE elsewhere (id INT) USING hudi LOCATION '{tmp_path}/elsewhere'")
    made = spark.sql("SHOW CREATE TABLE elsewhere").first()[0]
    assert f"\nLOCATION '{tmp_path}/elsewhere'\n" in made
    with pytest.raises(QueryError, match="elsewhere` is not partitioned"):
        spark.sql("DESCRIBE elsewhere PARTITION (id = 1)")
    assert "\nUSING hudi\n" in spark.sql(f"SHOW CREATE TABLE hudi.`{tmp_path}/elsewhere`").first()[0]
    spark.sql("DROP TABLE elsewhere")
    spark.sql(made)
    assert spark.sql("SHOW CREATE TABLE elsewhere").first()[0] == made
    folder = Path(spark.sql("DESCRIBE DATABASE shop").where("info_name = 'Location'").first()[1].removeprefix("file:"))
    for name in ("`a.b`", "`tørre`", "`my table`"):
        with pytest.raises(QueryError, match="no name of a table in Spark's catalog"):
            spark.sql(f"CREATE TABLE {name} (id INT) USING hudi")
    assert sorted(path.name for path in folder.iterdir()) == ["select"]


def test_locks_that_are_not_supported(spark, tmp_path):
    """They are refused before a table is created or changed. A table that another writer has locked so can be read."""
    provider = "com.example.OtherLockProvider"
    error = "allowed: InProcessLockProvider, FileSystemBasedLockProvider"
    place, option = tmp_path / "place", {"hoodie.write.lock.provider": provider}
    properties = f"TBLPROPERTIES ('hoodie.write.lock.provider' = '{provider}')"
    frame = spark.range(1)
    for create in (
        lambda: spark.sql(f"CREATE TABLE t (id INT) USING hudi {properties} LOCATION '{place}'"),
        lambda: spark.sql(f"CREATE TABLE t USING hudi {properties} LOCATION '{place}' AS SELECT 1 AS id"),
        lambda: frame.write.format("hudi").options(path=str(place), **option).saveAsTable("t"),
        lambda: frame.writeTo("t").using("hudi").options(path=str(place), **option).create(),
        lambda: frame.write.format("hudi").options(**option | {"hoodie.table.name": "t"}).save(str(place)),
        lambda: spark.catalog.createTable("t", str(place), "hudi", frame.schema, **option),
    ):
        with pytest.raises(ConfigError, match=error):
            create()
        assert not place.exists()
        assert not spark.catalog.tableExists("t")
    spark.sql(f"CREATE TABLE t USING hudi LOCATION '{place}' AS SELECT 1 AS id")
    with pytest.raises(ConfigError, match=error):
        spark.sql(f"ALTER TABLE t SET {properties}")
    with pytest.raises(ConfigError, match=error):
        spark.sql(f"CREATE OR REPLACE TABLE t USING hudi {properties} AS SELECT 2 AS id")
    spark.sql("INSERT INTO t SELECT 3")
    spark.sql("DROP TABLE t")
    spark.sql(f"CREATE TABLE t USING hudi {properties} LOCATION '{place}'")
    assert rows(spark, "SELECT id FROM t") == [(1,), (3,)]
    spark.sql("ALTER TABLE t SET TBLPROPERTIES (team = 'red')")
    with pytest.raises(ConfigError, match=error):
        spark.sql("INSERT INTO t SELECT 4")
    spark.sql("ALTER TABLE t UNSET TBLPROPERTIES ('hoodie.write.lock.provider')")
    spark.sql("INSERT INTO t SELECT 5")
    assert rows(spark, "SELECT id FROM t") == [(1,), (3,), (5,)]


def test_unknown_properties_are_warned_of_by_the_statement_that_sets_them(spark):
    """Once, with what may be meant. Those that resemble a key of the definition are refused; others are the user's."""

    def told(run):
        with pytest.warns(UnknownOptionWarning) as seen:
            run()
        unknown = [one for one in seen if one.category is UnknownOptionWarning]
        assert {one.filename for one in unknown} == {__file__}
        return [str(one.message) for one in unknown]

    unknown = "'hoodie.index.tpye' = 'BUCKET'"
    message = "unknown option 'hoodie.index.tpye' has no effect; did you mean 'hoodie.index.type'?"
    columns = "(id INT, ts INT) USING hudi"
    given = f"TBLPROPERTIES ({unknown}, team = 'red', primary = 'x', types = 'a')"
    assert told(lambda: spark.sql(f"CREATE TABLE t {columns} {given}")) == [message]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownOptionWarning)
        spark.sql("INSERT INTO t VALUES (1, 1)")
        spark.sql("ALTER TABLE t SET TBLPROPERTIES (team = 'blue')")
        assert rows(spark, "SELECT id FROM t") == [(1,)]
    shown = dict(spark.sql("SHOW TBLPROPERTIES t").collect())
    assert (shown["hoodie.index.tpye"], shown["team"], shown["types"]) == ("BUCKET", "blue", "a")
    assert told(lambda: spark.sql(f"ALTER TABLE t SET TBLPROPERTIES ({unknown})")) == [message]
    frame = spark.sql("SELECT 2 AS id, 2 AS ts")
    assert told(lambda: frame.write.option("hoodie.index.tpye", "BLOOM").insertInto("t")) == [message]
    for key, meant in (
        ("primarykey2", "primaryKey"),
        ("preCombineFields", "preCombineField"),
        ("ordering_fields", "orderingFields"),
        ("tpye", "type"),
        ("hoodie.table.recordkey.field", "hoodie.table.recordkey.fields"),
        ("hoodie.table.tpye", "hoodie.table.type"),
    ):
        for statement in (f"CREATE TABLE u {columns}", "ALTER TABLE t SET"):
            with pytest.raises(ConfigError, match=f"'{key}'; did you mean '{meant}'"):
                spark.sql(f"{statement} TBLPROPERTIES ('{key}' = 'id')")
    assert [row.tableName for row in spark.sql("SHOW TABLES").collect()] == ["t"]
