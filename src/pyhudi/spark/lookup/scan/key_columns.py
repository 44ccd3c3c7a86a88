"""Columns by which incoming keys are compared with those of base files.

Comparing the texts of keys is always correct, but reading and hashing them dominates the cost of a lookup. If a key
consists of numbers, dates or decimals that base files store with the same type, comparing these columns is equivalent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, DateType, DecimalType, IntegralType, StructType

from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.column_names import quoted
from pyhudi.spark.lookup.batch_summary import BatchSummary

_KEY = "_pyhudi_key_"
STORED_VALUE_PREFIX = "_pyhudi_stored_value_of_"
"""Begin of the names of stored columns in locations."""
_LONG_BITS = 64


@dataclass(frozen=True, slots=True)
class KeyColumns:
    """Columns by which keys are compared.

    Attributes:
        names: Names in the batch; in locations they are called ``_pyhudi_key_<i>``.
        bits: Number of bits of each column that the values of the batch occupy, if all together fit into one integer.
            Then this integer is compared instead, which takes Spark two thirds of the time. Empty: they do not fit.
    """

    names: tuple[str, ...]
    bits: tuple[int, ...] = ()

    @property
    def in_locations(self) -> tuple[str, ...]:
        return tuple(f"{_KEY}{i}" for i in range(1 if self.bits else len(self.names)))

    @classmethod
    def from_types(cls, types: Mapping[str, DataType], batch: BatchSummary) -> KeyColumns:
        """Compare key fields.

        Args:
            types: Types of the fields in files.
            batch: Summary of the batch.
        """
        return cls(tuple(types), _bits(types, batch))

    def columns_of(self, schema: StructType) -> list[Column]:
        """Return the key columns of rows of a schema, in the form in which they are compared; a single integer is valid
        only for rows within the ranges of the batch."""
        columns = [_widened(F.col(quoted([name])), schema[name].dataType) for name in self.names]
        if not self.bits:
            return columns
        return [
            reduce(
                lambda left, right: F.shiftleft(left, right[1]).bitwiseOR(right[0]),
                zip(columns[1:], self.bits[1:], strict=True),
                columns[0],
            )
        ]

    def matches(self, rows: DataFrame) -> Column:
        """Return the condition that a row and a location, joined with the rows, have the same key."""
        pairs = zip(self.columns_of(rows.schema), self.in_locations, strict=True)
        return reduce(and_, (row_column == F.col(location_column) for row_column, location_column in pairs))


TEXT = KeyColumns((RECORD_KEY,))


def _widened(column: Column, data_type: DataType) -> Column:
    # Integers of all widths have the same text, so they are compared as the widest type.
    return column.cast("bigint") if isinstance(data_type, IntegralType) else column


def _bits(types: Mapping[str, DataType], batch: BatchSummary) -> tuple[int, ...]:
    """Return the number of bits of each key column, if all values are integers, none is negative, and all together fit
    into one integer."""
    ranges = [batch.ranges[name] for name in types]
    if len(ranges) < 2 or not all(isinstance(kind, IntegralType) for kind in types.values()):
        return ()
    if any(minimum is None or minimum < 0 for minimum, _ in ranges):
        return ()
    bits = tuple(maximum.bit_length() for _, maximum in ranges)
    return bits if sum(bits) < _LONG_BITS else ()


def native_candidates(schema: StructType, spec: KeySpec) -> tuple[str, ...]:
    """Return the key fields if two rows have the same key text exactly if they have the same values of these fields.

    This does not hold for strings, because nothing marks the end of a string in keys of several fields; nor for
    timestamps, whose text depends on options; nor for floats (0.0 equals -0.0).

    Returns:
        The fields; empty if keys have to be compared as texts.
    """
    if spec.auto_keys or spec.key_class is not None or not all(name in schema.names for name in spec.record_fields):
        return ()
    kinds = [schema[name].dataType for name in spec.record_fields]
    if not all(isinstance(kind, (IntegralType, DateType, DecimalType)) for kind in kinds):
        return ()
    return spec.record_fields


def extra_name(name: str) -> str:
    """Return the name of a stored column in a table of locations."""
    return STORED_VALUE_PREFIX + name
