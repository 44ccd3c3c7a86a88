"""``df.mergeInto``, a method of Spark 4."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.errors import AmbiguousMergeError, QueryError, SchemaMismatchError, UnsupportedTableError
from pyhudi.spark.dml.merge import merge_builder
from tests.cases import IN_CONNECT, seldom
from tests.spark.sql.ride_tables import RIDES, rows

pytest.importorskip("sqlglot")
pytestmark = [
    pytest.mark.usefixtures("database"),
    pytest.mark.skipif(not hasattr(DataFrame, "mergeInto"), reason="Spark 3.5 has no mergeInto"),
]

ALL = "SELECT id, name, fare, city FROM rides"
FIRST = [(1, "a", 10, "Oslo"), (2, "b", 20, "Oslo"), (3, "c", 30, "Moss")]


@pytest.fixture(params=["cow", seldom("mor")])
def rides(spark, request):
    spark.sql(RIDES.format(request.param))
    spark.sql("INSERT INTO rides VALUES (1, 'a', 10, 'Oslo'), (2, 'b', 20, 'Oslo'), (3, 'c', 30, 'Moss')")
    return spark


def match():
    return F.col("rides.id") == F.col("s.id")


def source(spark, *given):
    return spark.createDataFrame(given, "id int, name string, fare long, city string").alias("s")


def test_clauses(rides):
    merge = source(rides, (1, "A", 100, "Oslo"), (2, "B", 0, "Oslo"), (8, "x", 8, "Moss"), (9, "y", 0, "Moss"))
    (
        merge.mergeInto("shop.rides", match())
        .whenMatched(F.col("s.fare") == 0)
        .delete()
        .whenMatched()
        .update({"fare": F.col("rides.fare") + F.col("s.fare"), "rides.name": F.expr("s.name")})
        .whenNotMatched(F.expr("s.fare > 0"))
        .insert({"id": F.col("s.id"), "city": F.col("city"), "name": F.lit("new")})
        .whenNotMatchedBySource(F.col("rides.city") == "Moss")
        .update({"name": F.concat("rides.name", F.lit("!"))})
        .merge()
    )
    expected = [(1, "A", 110, "Oslo"), (3, "c!", 30, "Moss"), (8, "new", None, "Moss")]
    assert rows(rides, ALL) == expected
    rides.table("rides").limit(0).alias("s").mergeInto("rides", match()).whenNotMatchedBySource().delete().merge()
    assert rows(rides, ALL) == []


@pytest.mark.parametrize("by_text", [True, False])
def test_all_columns_by_name_and_a_writer_that_is_kept(rides, monkeypatch, by_text):
    """A condition that equates the columns of the key makes it an upsert."""
    if by_text or not IN_CONNECT:  # where Columns are printed in another way
        monkeypatch.setattr(merge_builder, "planned_join", None)
    condition = F.expr("rides.id = s.id AND rides.city = s.city")
    if not by_text:
        condition = (F.col("rides.id") == F.col("s.id")) & (F.col("s.city") == F.col("rides.city"))
    writer = source(rides, (2, "B", 200, "Oslo"), (4, "d", 40, "Moss")).mergeInto("rides", condition)
    writer.whenMatched().updateAll()
    writer.whenNotMatched().insertAll()
    assert writer.merge() is None
    assert rows(rides, ALL) == [FIRST[0], (2, "B", 200, "Oslo"), FIRST[2], (4, "d", 40, "Moss")]


def test_what_is_refused(rides):
    more = source(rides, (2, "B", 200, "Oslo"), (2, "C", 300, "Oslo"))
    with pytest.raises(QueryError, match="requires at least one clause"):
        more.mergeInto("rides", match()).merge()
    with pytest.raises(UnsupportedTableError, match="withSchemaEvolution"):
        more.mergeInto("rides", match()).withSchemaEvolution()
    with pytest.raises(QueryError, match="no source row"):
        more.mergeInto("rides", match()).whenNotMatchedBySource().updateAll()
    with pytest.raises(QueryError, match="cannot INSERT"):
        more.mergeInto("rides", match()).whenMatched().insertAll()
    with pytest.raises(SchemaMismatchError, match=r"'fair'.* did you mean 'fare'"):
        more.mergeInto("rides", match()).whenMatched().update({"fair": F.lit(1)}).merge()
    with pytest.raises(AmbiguousMergeError):
        more.mergeInto("rides", match()).whenMatched().updateAll().merge()
    assert rows(rides, ALL) == FIRST


def test_other_tables_are_left_to_spark(rides):
    rides.sql("CREATE TABLE plain (id INT) USING parquet")
    merge = source(rides, (1, "a", 1, "Oslo"))
    with pytest.raises(Exception, match="MERGE"):
        merge.mergeInto("plain", F.expr("plain.id = s.id")).whenMatched().delete().merge()
