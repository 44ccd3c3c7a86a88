"""A table of rides, and the rows of queries."""

from __future__ import annotations


def rows(spark, query, **parameters):
    """Return the rows of a query, sorted."""
    return sorted(tuple(row) for row in spark.sql(query, **parameters).collect())


def rows_in_order(spark, query, **parameters):
    return [tuple(row) for row in spark.sql(query, **parameters).collect()]


RIDES = (
    "CREATE TABLE rides (id INT, name STRING COMMENT 'who', fare BIGINT, city STRING) USING hudi "
    "TBLPROPERTIES (primaryKey = 'id', type = '{}') PARTITIONED BY (city)"
)
