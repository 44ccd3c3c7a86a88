"""Rows of a DataFrame whose vectors are nearest to a query vector, or to each of many.

Distances are computed by functions of Arrow arrays, and the nearest rows are found by Spark: for one query without a
sort of all rows, for many by a join with all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, StructType

from pyhudi.errors import QueryError
from pyhudi.read.functions.vector_distance import (
    DISTANCE,
    QUERY_INDEX,
    QUERY_PREFIX,
    Matrix,
    Metric,
    array_distances,
    check_count,
    check_query,
    pair_distances,
    vector_field,
)
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.logical_types.vectors import is_vector, vector_text
from pyhudi.spark.column_names import quoted_name
from pyhudi.spark.execution.arrow_udfs import arrow_function

_QUERY, _RANK = "_pyhudi_query", "_pyhudi_distance_rank"


def nearest(rows: DataFrame, column: str, query: Any, k: int, metric: Metric) -> DataFrame:
    """Return the ``k`` rows nearest to a query vector, the nearest first, with their distances in place of the vectors.

    Rows without a vector are skipped.

    Raises:
        QueryError: There is no such column, or the query does not fit it.
    """
    field = _vectors(rows.schema, column)
    numbers = np.array(check_query(query, field.name, field.type))
    k = check_count(k)
    columns = [name for name in rows.columns if name != field.name]
    ranked = rows.select(*map(quoted_name, columns), _distance_to(field, numbers, metric).alias(DISTANCE))
    # a filter below the limit would decode the vectors once more
    return ranked.orderBy(sf.col(DISTANCE).asc_nulls_last()).limit(k).where(sf.col(DISTANCE).isNotNull())


def nearest_to_each(
    rows: DataFrame, column: str, queries: DataFrame, query_column: str, *, k: int, metric: Metric
) -> DataFrame:
    """Return the ``k`` rows nearest to each query vector, with the other columns of the query and the distances.

    The vectors of both sides are omitted. Columns of queries whose name a column of the rows has get a prefix. Rows
    and queries without a vector are skipped.

    Args:
        rows: The rows to search.
        column: Their column with the vectors.
        queries: The queries, one a row; they have to fit into the memory of each executor.
        query_column: Their column with the query vectors.
        k: Number of rows for each query.
        metric: Definition of the distance.

    Raises:
        QueryError: There are no such columns, or their types differ.
    """
    stored, searched = _vectors(rows.schema, column), _vectors(queries.schema, query_column)
    k = check_count(k)
    if is_vector(stored.type) and is_vector(searched.type) and stored.type.list_size != searched.type.list_size:
        raise QueryError(
            f"column {stored.name!r} is a {vector_text(stored.type)}, and column {searched.name!r} of the queries is a "
            f"{vector_text(searched.type)}; their dimensions must be the same"
        )
    own_columns = [name for name in rows.columns if name != stored.name]
    used_names = {name.lower() for name in rows.columns}
    renamed = {n: f"{QUERY_PREFIX}{n}" if n.lower() in used_names else n for n in queries.columns if n != searched.name}
    numbered_queries = _with_vectors(queries, searched.name).select(
        *(sf.col(quoted_name(name)).alias(new) for name, new in renamed.items()),
        sf.col(quoted_name(searched.name)).alias(_QUERY),
        sf.monotonically_increasing_id().alias(QUERY_INDEX),
    )
    pairs = rows.crossJoin(sf.broadcast(numbered_queries))
    columns = [*map(quoted_name, own_columns), *map(quoted_name, renamed.values()), QUERY_INDEX]
    ranked = pairs.select(*columns, _distance_of_pairs(stored, searched, metric).alias(DISTANCE))
    order = Window.partitionBy(QUERY_INDEX).orderBy(sf.col(DISTANCE).asc_nulls_last())
    nearest = ranked.withColumn(_RANK, sf.row_number().over(order)).where(sf.col(_RANK) <= k)
    return nearest.where(sf.col(DISTANCE).isNotNull()).select(*columns, DISTANCE)


def _vectors(schema: StructType, column: str) -> pa.Field:
    return vector_field(from_spark_json(schema.json()), column)


def _with_vectors(rows: DataFrame, column: str) -> DataFrame:
    return rows.where(sf.col(quoted_name(column)).isNotNull())


def _distance_to(field: pa.Field, query: Matrix, metric: Metric) -> Column:
    """Return the distances of the vectors of a column; null where there is none."""

    def run(vectors: pa.Array) -> pa.Array:
        return array_distances(vectors, query, metric, field.name)

    return arrow_function(run, [_list(field)], DoubleType())(sf.col(quoted_name(field.name)))


def _distance_of_pairs(field: pa.Field, other: pa.Field, metric: Metric) -> Column:
    def run(vectors: pa.Array, queries: pa.Array) -> pa.Array:
        return pair_distances(vectors, queries, metric, field.name)

    run_on = arrow_function(run, [_list(field), _list(other)], DoubleType())
    return run_on(sf.col(quoted_name(field.name)), sf.col(_QUERY))


def _list(field: pa.Field) -> pa.DataType:
    return pa.list_(field.type.value_type)
