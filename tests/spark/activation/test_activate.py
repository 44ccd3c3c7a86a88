"""``format("hudi")`` goes to pyhudi, other formats do not notice."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import pyhudi
import pyhudi.spark
from pyhudi.errors import (
    ConfigError,
    InvalidOptionError,
    NotAHudiTableError,
    QueryError,
    SetupError,
    UnknownOptionWarning,
)
from pyhudi.sql.sql_parser import has_sql_parser
from tests.tables import HandMadeTable, at


@pytest.fixture(autouse=True)
def _active(spark):
    pyhudi.activate(spark)
    yield
    pyhudi.deactivate()


@pytest.fixture
def table(tmp_path) -> HandMadeTable:
    made = HandMadeTable(tmp_path / "t")
    made.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]}, done=12)
    made.write(20, {("a", "f1"): [{"id": "1", "p": "a", "v": 2}]}, done=22)
    return made


@pytest.fixture
def written(monkeypatch) -> list[tuple]:
    """What the writer is called with, instead of writing."""
    # modules that are imported while the writer is replaced would keep the replacement
    for module in pkgutil.walk_packages(pyhudi.spark.__path__, "pyhudi.spark."):
        importlib.import_module(module.name)
    calls: list[tuple] = []
    monkeypatch.setattr(
        "pyhudi.spark.write.dataframe_writer.write",
        lambda df, path, options, mode: calls.append((df, path, options, mode)),
    )
    return calls


@pytest.mark.parametrize("name", ["hudi", "org.apache.hudi", "HUDI"])
def test_a_table_is_loaded_by_its_format(spark, table, name):
    assert spark.read.format(name).load(str(table.root)).count() == 1
    assert spark.read.load(str(table.root), format=name).count() == 1
    assert spark.read.option("path", str(table.root)).format(name).load().count() == 1


def test_options_come_in_every_way(spark, table):
    reader = spark.read.option("as.of.instant", at(10)).format("hudi")
    assert reader.load(str(table.root)).first()["v"] == 1
    assert spark.read.format("hudi").options(**{"as.of.instant": at(20)}).load(str(table.root)).first()["v"] == 2
    assert spark.read.format("hudi").load(str(table.root), **{"as.of.instant": at(10)}).first()["v"] == 1
    incremental = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": at(22)}
    assert spark.read.format("hudi").options(**incremental).load(str(table.root)).count() == 0


def test_one_reader_can_load_again(spark, table):
    reader = spark.read.format("hudi")
    assert reader.load(str(table.root)).first()["v"] == 2
    assert reader.option("as.of.instant", at(10)).load(str(table.root)).first()["v"] == 1


def test_errors_are_ours(spark, table, tmp_path):
    with pytest.raises(NotAHudiTableError, match="nothing"):
        spark.read.format("hudi").load(str(tmp_path / "nothing"))
    with pytest.raises(NotAHudiTableError, match=f"typo.*in the table above it at '{table.root}'"):
        spark.read.format("hudi").load(f"{table.root}/typo")
    with pytest.raises(QueryError, match="requires the path"):
        spark.read.format("hudi").load()
    with pytest.raises(QueryError, match="columns of a Hudi table cannot be set"):
        spark.read.format("hudi").schema("id string").load(str(table.root))
    with pytest.raises(InvalidOptionError, match="bogus"):
        spark.read.format("hudi").option("hoodie.datasource.query.type", "bogus").load(str(table.root))
    with pytest.raises(ConfigError, match=r"did you mean 'hoodie\.datasource\.query\.type'"):
        spark.read.format("hudi").option("hoodie.datasource.querry.type", "snapshot").load(str(table.root))
    with pytest.raises(QueryError, match="is not 'incremental'"):
        spark.read.format("hudi").option("hoodie.datasource.read.begin.instanttime", "0").load(str(table.root))
    with pytest.warns(UnknownOptionWarning, match=r"parquet\.max\.file\.size"):
        spark.read.format("hudi").option("hoodie.parquet.max.file.sise", "1").load(str(table.root))


def test_a_frame_is_saved_by_its_format(spark, written):
    frame = spark.range(3)
    frame.write.format("hudi").option("hoodie.table.name", "t").options(a=1, b=True).mode("append").save("/x")
    frame.write.save("/y", format="hudi", mode="overwrite", partitionBy=["p", "q"], c="d")
    frame.write.format("hudi").partitionBy("p").save("/z")
    frame.write.format("org.apache.hudi").partitionBy(["p"]).option("path", "/w").mode("ignore").save()
    field = "hoodie.datasource.write.partitionpath.field"
    assert [call[1:] for call in written] == [
        ("/x", {"hoodie.table.name": "t", "a": "1", "b": "true"}, "append"),
        ("/y", {"c": "d", field: "p,q"}, "overwrite"),
        ("/z", {field: "p"}, "errorifexists"),
        ("/w", {field: "p"}, "ignore"),
    ]
    assert all(isinstance(call[0], DataFrame) and call[0].count() == 3 for call in written)


def test_partition_fields_given_as_an_option_win(spark, written):
    field = "hoodie.datasource.write.partitionpath.field"
    spark.range(1).write.format("hudi").option(field, "x:simple").partitionBy("y").save("/t")
    assert written[0][2] == {field: "x:simple"}


@pytest.mark.parametrize(
    ("name", "arguments", "cure"),
    [
        ("bucketBy", (4, "id"), "hoodie.bucket.index.num.buckets"),
        ("sortBy", ("id",), "hoodie.clustering.plan.strategy.sort.columns"),
        ("clusterBy", ("id",), "hoodie.clustering.plan.strategy.sort.columns"),
    ],
)
def test_layouts_of_sparks_own_tables_are_refused(spark, written, name, arguments, cure):
    def laid_out(writer):
        return getattr(writer.bucketBy(4, "id") if name == "sortBy" else writer, name)(*arguments)

    frame = spark.range(3)
    if not hasattr(DataFrameWriter, name):
        pytest.skip("this Spark has no such method")
    with pytest.raises(ConfigError, match=cure):
        laid_out(frame.write.format("hudi")).save("/x")
    if has_sql_parser():
        with pytest.raises(ConfigError, match=cure):
            laid_out(frame.write).saveAsTable("laid_out", format="hudi")
        with pytest.raises(ConfigError, match=cure):
            laid_out(frame.write).insertInto("hudi.`/x`")
        if name == "clusterBy":
            with pytest.raises(ConfigError, match=cure):
                laid_out(frame.writeTo("laid_out")).using("hudi")
    assert written == []
    laid_out(frame.write).format("parquet").saveAsTable("laid_out")
    spark.sql("DROP TABLE laid_out")


def test_other_formats_do_not_notice(spark, tmp_path, written):
    spark.range(5).selectExpr("id", "id v").write.partitionBy("id").mode("overwrite").parquet(str(tmp_path / "p"))
    spark.range(5).write.format("json").option("compression", "none").save(str(tmp_path / "j"))
    assert spark.read.parquet(str(tmp_path / "p")).count() == 5
    assert spark.read.format("json").schema("id long").load(str(tmp_path / "j")).count() == 5
    assert spark.read.load(str(tmp_path / "j"), format="json").count() == 5
    assert written == []


def test_activation_is_idempotent_and_reversible(spark, table):
    pyhudi.activate(spark)
    assert pyhudi.activate(spark) is spark
    wrapped = DataFrameReader.load
    pyhudi.deactivate()
    assert DataFrameReader.load is not wrapped
    assert "_pyhudi" not in DataFrameWriter.save.__qualname__
    assert not [name for name in vars(spark.read) if "pyhudi" in name]
    assert isinstance(SparkSession.__dict__["read"], property)
    if spark.version.startswith("3."):
        with pytest.raises(Exception, match=r"(?i)hudi"):
            spark.read.format("hudi").load(str(table.root))
    else:  # by the Python data source, whose columns come from no wrapped method
        assert spark.read.format("hudi").load(str(table.root)).count() == 1
    pyhudi.deactivate()
    pyhudi.activate()
    assert spark.read.format("hudi").load(str(table.root)).count() == 1


def test_wrong_order_of_session_and_configuration(spark):
    with pytest.raises(SetupError, match=r"takes the builder of a session, not a SparkSession.*\.getOrCreate\(\)"):
        pyhudi.configure_spark(spark)
    with pytest.raises(SetupError, match=r"takes a Spark session, not a Builder: start one with .*\.getOrCreate\(\)"):
        pyhudi.activate(SparkSession.builder)
    with pytest.raises(SetupError, match="takes a Spark session, not 'local'"):
        pyhudi.activate("local")


def test_sql_without_its_parser(spark, table, monkeypatch):
    """Errors name the missing package, and nothing else is different."""
    pyhudi.deactivate()
    monkeypatch.setattr("pyhudi.spark.activation.activate.has_sql_parser", lambda: False)
    pyhudi.activate(spark)
    rows = spark.range(1)
    calls = [
        lambda: rows.write.format("hudi").saveAsTable("without_parser"),
        lambda: rows.write.saveAsTable("without_parser", format="Hudi"),
        lambda: rows.writeTo("without_parser").using("hudi"),
    ]
    if spark.version.startswith("3."):  # later releases find the Python data source
        calls += [
            lambda: spark.sql("CREATE TABLE without_parser (id INT) USING hudi"),
            lambda: spark.sql(f"SELECT * FROM Hudi.`{table.root}`"),
            lambda: spark.table(f"hudi.`{table.root}`"),
        ]
    for call in calls:
        with pytest.raises(SetupError, match=r"sqlglot, which is not installed: pip install 'pyhudi\[sql\]'"):
            call()
    assert spark.sql("SELECT 'hudi' AS name").first() == ("hudi",)
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nothing")
    rows.createOrReplaceTempView("without_parser")
    assert spark.table("without_parser").count() == 1
    spark.catalog.dropTempView("without_parser")
    assert spark.read.format("hudi").load(str(table.root)).count() == 1
