"""Encoding of rows that Spark passes to Python tasks.

Spark converts each decimal that goes into an Arrow batch to a Java ``BigDecimal``, which takes longer than all other
columns together. Decimals of up to 15 digits are represented exactly as integers in a double, so they are transferred
as their unscaled integers and converted back in the task, which only copies bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DecimalType

from pyhudi.arrow.empty_offsets import with_offsets
from pyhudi.spark.column_names import quoted

_EXACT_DIGITS = 15
"""Number of digits up to which the unscaled integers of decimals are exact in a double."""


@dataclass(frozen=True, slots=True)
class RowUnpacker:
    """Decoder of packed rows, run in a task: the columns that are unscaled integers, with their decimal types."""

    decimals: Mapping[str, pa.Decimal128Type]

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches with the original columns."""
        for batch in with_offsets(batches):
            yield self._unpacked(batch) if self.decimals else batch

    def _unpacked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.schema.names
        columns = [
            decimals(column, self.decimals[name]) if name in self.decimals else column
            for name, column in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=names)


def pack_rows(rows: DataFrame) -> tuple[DataFrame, RowUnpacker]:
    """Return the rows with packed decimals, and the decoder."""
    decimals: dict[str, pa.Decimal128Type] = {}
    for field in rows.schema:
        data_type = field.dataType
        if isinstance(data_type, DecimalType) and data_type.precision <= _EXACT_DIGITS:
            decimals[field.name] = pa.decimal128(data_type.precision, data_type.scale)
    if not decimals:
        return rows, RowUnpacker({})
    packed = {name: _unscaled(F.col(quoted([name])), kind.scale) for name, kind in decimals.items()}
    return rows.withColumns(packed), RowUnpacker(decimals)


def _unscaled(column: Column, scale: int) -> Column:
    return F.rint(column.cast("double") * F.lit(float(10**scale))).cast("bigint")


def decimals(unscaled: pa.Array, data_type: pa.Decimal128Type) -> pa.Array:
    """Return decimals made from unscaled 64-bit integers."""
    low = np.zeros(0, dtype=np.int64)
    if len(unscaled):
        _, data = unscaled.buffers()
        low = np.frombuffer(data, dtype=np.int64, count=len(unscaled), offset=8 * unscaled.offset)
    halves = np.empty((len(low), 2), dtype=np.int64)  # little-endian: the low half first
    halves[:, 0] = low
    np.right_shift(low, 63, out=halves[:, 1])
    made = pa.Array.from_buffers(data_type, len(low), [None, pa.py_buffer(halves)])
    if not unscaled.null_count:
        return made
    validity = pa.array(unscaled.is_valid().to_numpy(zero_copy_only=False)).buffers()[1]
    return pa.Array.from_buffers(data_type, len(low), [validity, pa.py_buffer(halves)])
