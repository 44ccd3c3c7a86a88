"""Distances between vectors, as Apache Hudi's ``hudi_vector_search`` defines them: the smaller, the more similar."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import QueryError
from pyhudi.schema.logical_types.vectors import ELEMENTS, is_vector, vector_text

DISTANCE = "_hudi_distance"
"""Column with the distances in results."""
QUERY_INDEX = "_hudi_query_index"
"""Column of results of several queries that tells which query a row belongs to."""
QUERY_PREFIX = "_hudi_query_"
"""Prefix of columns of queries whose name a column of the table has."""

Matrix = npt.NDArray[np.float64]
"""A row for each vector."""
Distances = npt.NDArray[np.float64]


class Metric(StrEnum):
    """Definition of the distance of two vectors."""

    COSINE = "cosine"
    """1 minus the cosine of their angle, from 0 to 2; 1 if one of them is zero."""
    L2 = "l2"
    """Euclidean distance."""
    DOT_PRODUCT = "dot_product"
    """Negated dot product."""

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Return the metric of a name, in any case; ``euclidean`` and ``inner_product`` are names, too.

        Raises:
            QueryError: There is no such metric.
        """
        name = str(text).lower()
        name = {"euclidean": "l2", "inner_product": "dot_product"}.get(name, name)
        try:
            return cls(name)
        except ValueError as error:
            raise QueryError(f"there is no distance metric {text!r}; use cosine, l2 or dot_product") from error


def check_count(k: Any) -> int:
    """Return the number of rows that a search is to find.

    Raises:
        QueryError: It is not a positive integer.
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise QueryError(f"the number of nearest neighbors must be a positive integer, not {k!r}")
    return int(k)


def check_query(query: Any, column: str, data_type: pa.DataType | None = None) -> tuple[float, ...]:
    """Return the numbers of a query vector.

    Args:
        query: A sequence of numbers, also an array of NumPy or Arrow.
        column: The column with the vectors, for messages.
        data_type: Its type; None if its dimension is not known.

    Raises:
        QueryError: It is not a sequence of numbers, or does not have the dimension of the column.
    """
    if isinstance(query, pa.Array | pa.FixedSizeListScalar | pa.ListScalar):
        query = query.tolist() if isinstance(query, pa.Array) else query.as_py()
    try:
        numbers = tuple(math.nan if number is None else float(number) for number in query)
        missing = next((i for i, number in enumerate(query) if number is None), None)
    except (TypeError, ValueError) as error:
        raise QueryError(f"the query vector must be a list of numbers, not {query!r}") from error
    if missing is not None:
        raise QueryError(f"the query vector has no number at position {missing}")
    if data_type is not None and is_vector(data_type) and len(numbers) != data_type.list_size:
        raise QueryError(
            f"the query vector has {len(numbers)} numbers, but column {column!r} is a {vector_text(data_type)}"
        )
    return numbers


def vector_field(schema: pa.Schema, column: str) -> pa.Field:
    """Return the column with vectors, whose name may differ in case; arrays of numbers are vectors, too.

    Raises:
        QueryError: There is no such column, or it has other values.
    """
    same = [name for name in schema.names if name == column]
    matches = same or [name for name in schema.names if name.lower() == column.lower()]
    if not matches:
        raise QueryError(f"there is no column {column!r}; there are {', '.join(schema.names)}")
    field = schema.field(matches[0])
    if is_vector(field.type) or (pa.types.is_list(field.type) and field.type.value_type in ELEMENTS.values()):
        return field
    raise QueryError(f"column {field.name!r} is of the type {field.type}; a search needs a column of the type VECTOR")


def array_distances(vectors: pa.Array, query: Matrix, metric: Metric, column: str) -> pa.DoubleArray:
    """Return the distances of vectors and a query; null for null.

    Args:
        vectors: An array of lists, of fixed size or not.
        query: The numbers of the query.
        metric: Definition of the distance.
        column: Name of the column, for messages.

    Raises:
        QueryError: A list does not have as many numbers as the query.
    """
    present = vectors.drop_null()
    return _spread(_distances(_matrix(present, len(query), column), query, metric), vectors.is_valid())


def pair_distances(vectors: pa.Array, queries: pa.Array, metric: Metric, column: str) -> pa.DoubleArray:
    """Return the distances of vectors and the queries of the same rows; null where one is null.

    Raises:
        QueryError: The lists of a row do not have as many numbers.
    """
    both_valid = pc.and_(vectors.is_valid(), queries.is_valid())
    left, right = vectors.filter(both_valid), queries.filter(both_valid)
    size = pc.list_value_length(right[:1])[0].as_py() if len(right) else 1
    distances = _distances(_matrix(left, size, column), _matrix(right, size, column), metric)
    return _spread(distances, both_valid)


def _spread(values: Distances, valid: pa.BooleanArray) -> pa.DoubleArray:
    """Return values at the valid places, null elsewhere."""
    if len(values) == len(valid):
        return pa.array(values)
    mask = ~valid.to_numpy(zero_copy_only=False)
    filled = np.zeros(len(valid))
    filled[~mask] = values
    return pa.array(filled, mask=mask)


def _matrix(vectors: pa.Array, size: int, column: str) -> Matrix:
    """Return vectors without nulls as the rows of a matrix."""
    lengths = pc.list_value_length(vectors)
    other = lengths.filter(pc.not_equal(lengths, size))
    if len(other):
        raise QueryError(
            f"a vector of column {column!r} has {other[0].as_py()} numbers, and the query vector {size}; they must "
            "have the same dimension"
        )
    matrix: Matrix = vectors.flatten().to_numpy(zero_copy_only=False).reshape(-1, size).astype(np.float64)
    return matrix


def _distances(vectors: Matrix, queries: Matrix, metric: Metric) -> Distances:
    if metric is Metric.L2:
        apart = vectors - queries
        return np.sqrt(_products(apart, apart))
    products = _products(vectors, queries)
    if metric is Metric.DOT_PRODUCT:
        return -products
    lengths = np.sqrt(_products(vectors, vectors)) * np.sqrt(_products(queries, queries))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(lengths == 0, 1.0, np.clip(1.0 - products / lengths, 0.0, 2.0))


def _products(left: Matrix, right: Matrix) -> Distances:
    """Return the dot products of the rows of matrices, or of one vector."""
    if left.ndim == right.ndim == 2:
        return np.asarray(np.einsum("ij,ij->i", left, right))
    return np.asarray(left @ right)
