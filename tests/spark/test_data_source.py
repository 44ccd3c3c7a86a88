"""``format("hudi")`` of Spark 4 without ``activate``: the Python data source that Spark finds by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cases import seldom
from tests.golden.expected import cases, check, unpack
from tests.spark_arrow import to_arrow

from pyhudi import HudiTable

pytest.importorskip("pyspark.sql.datasource", reason="Spark has Python data sources from version 4 on")

PUSHED = "spark.sql.python.filterPushdown.enabled"
CASES = [case if case.values[1] == "snapshot" else seldom(case) for case in cases()]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_golden(name: str, kind: str, tables: Path, spark: SparkSession) -> None:
    golden = unpack(name, tables)
    for query in golden.queries(kind):
        reader = spark.read.format("hudi").options(**query.options)
        if "cdc" in query.options.values():
            with pytest.raises(Exception, match=r"call pyhudi\.activate"):
                reader.load(str(golden.path)).count()
        elif query.error is None:
            check(golden, query, to_arrow(reader.load(str(golden.path))))


def test_filters(tables: Path, spark: SparkSession) -> None:
    """Files are left out by what Spark tells, where it is asked to tell."""
    path = str(unpack("v9_mor_meta_all", tables).path)
    whole = HudiTable.for_path(path).scan().to_arrow()
    names = [f.name for f in whole.schema if str(f.type) in ("string", "int32", "int64", "date32[day]")]
    assert len(names) > 5
    spark.conf.set(PUSHED, "true")
    try:
        for name in names:
            value = next((v for v in whole[name].to_pylist() if v is not None), None)
            expected = sum(v == value for v in whole[name].to_pylist())
            rows = spark.read.format("hudi").option("pyhudi.read.pushed.filters", "true").load(path)
            assert rows.where(rows[f"`{name}`"] == value).count() == expected, name
            assert rows.where(rows[f"`{name}`"].isin(value, value)).count() == expected, name
    finally:
        spark.conf.unset(PUSHED)


def test_refused(tmp_path: Path, tables: Path, spark: SparkSession) -> None:
    rows = spark.range(3)
    with pytest.raises(Exception, match=r"call pyhudi\.activate"):
        rows.write.format("hudi").mode("append").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
    with pytest.raises(Exception, match=r"no Hudi table"):
        spark.read.format("hudi").load(str(tmp_path)).count()
    with pytest.raises(Exception, match="needs the path of a table"):
        spark.read.format("hudi").load()
    path = str(unpack("v9_cow_types", tables).path)
    with pytest.raises(Exception, match=r"call pyhudi\.activate"):
        spark.readStream.format("hudi").load(path).writeStream.format("noop").start().awaitTermination(60)
