"""Functions of Arrow arrays as columns of Spark.

Spark 4.1 has such functions (`arrow_udf`). Earlier releases pass pandas series, which they convert value by value where
these are lists, and take NaN for null. Here, series that wrap Arrow arrays pass through that conversion unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType

ArrowFunction = Callable[..., pa.Array]
ArrowPieces = Callable[..., Iterator[pa.Array]]
_ARROW_UDF: Any = getattr(sf, "arrow_udf", None)


def arrow_function(run: ArrowFunction, inputs: list[pa.DataType], result: DataType) -> Callable[..., Column]:
    """Return a function of columns that runs ``run`` on the Arrow arrays of batches of rows.

    Args:
        run: Takes an array for each column, and returns an array of the same length. It is pickled.
        inputs: Arrow types of the columns.
        result: Spark's type of the arrays that ``run`` returns.
    """
    if _ARROW_UDF is not None:

        def of_arrays(*columns: pa.Array) -> pa.Array:
            return run(*(column.cast(kind) for column, kind in zip(columns, inputs, strict=True)))

        return _ARROW_UDF(of_arrays, result)  # type: ignore[no-any-return]

    def of_series(*columns: pd.Series) -> pd.Series:
        arrays = [_array(column, kind) for column, kind in zip(columns, inputs, strict=True)]
        return _ArrowSeries(pd.arrays.ArrowExtensionArray(run(*arrays)))

    return sf.pandas_udf(of_series, result)  # type: ignore[no-any-return]


def arrow_pieces_function(run: ArrowPieces, inputs: list[pa.DataType], result: DataType) -> Callable[..., Column]:
    """Return a function of columns whose values may be too large for an array of all rows of a batch.

    Args:
        run: Takes an array for each column, and yields arrays that together have the same length. It is pickled.
        inputs: Arrow types of the columns: there are several.
        result: Spark's type of the arrays that ``run`` yields.
    """
    if _ARROW_UDF is not None:

        def of_arrays(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
            for columns in batches:
                yield from run(*(column.cast(kind) for column, kind in zip(columns, inputs, strict=True)))

        return _ARROW_UDF(of_arrays, result)  # type: ignore[no-any-return]

    def of_series(batches: Iterator[tuple[pd.Series, ...]]) -> Iterator[pd.Series]:
        for columns in batches:
            arrays = (_array(column, kind) for column, kind in zip(columns, inputs, strict=True))
            for piece in run(*arrays):
                yield _ArrowSeries(pd.arrays.ArrowExtensionArray(piece))

    return sf.pandas_udf(of_series, result)  # type: ignore[no-any-return]


def _array(column: pd.Series, data_type: pa.DataType) -> pa.Array:
    if isinstance(column.array, pd.arrays.ArrowExtensionArray):  # what another of these functions returned
        array = pa.array(column.array)
        return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(data_type)
    if pa.types.is_nested(data_type):  # NaN inside of a value is not null
        return pa.array(column.to_numpy(), data_type, mask=column.isna().to_numpy())
    return pa.array(column.to_numpy(), data_type, from_pandas=True)


class _ArrowSeries(pd.Series):  # type: ignore[misc]  # pandas has no types
    """A series of an Arrow array that Spark does not convert value by value."""

    def apply(self, *_: Any, **__: Any) -> _ArrowSeries:
        """Return the series itself."""
        return self
