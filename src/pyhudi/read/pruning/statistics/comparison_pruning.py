"""Min-max pruning: determines from the minimum and maximum of a column whether any row may satisfy a comparison.

Files are kept in all uncertain cases. Texts have two orders (bytes, and Java's UTF-16 units), so a text is only used if
both agree. NaN is greater than all numbers in Spark, and statistics omit it, so upper bounds of floating-point columns
are ignored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import numpy_mask
from pyhudi.errors import QueryError
from pyhudi.read.filters.terms import Term, literal

Mask = npt.NDArray[np.bool_]

_MAX_VALUES = 256
"""Number of values above which a list is treated as the range from its minimum to its maximum."""
_FIRST_OUT_OF_ORDER = 0xEE
"""Least UTF-8 byte from which the byte order may differ from that of UTF-16."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Statistics of one column in many files, row by row.

    ``minimum`` and ``maximum`` are null if unknown; ``only_nulls`` marks files that certainly have only nulls,
    ``no_nulls`` those that certainly have none.
    """

    minimum: pa.Array
    maximum: pa.Array
    only_nulls: Mask
    no_nulls: Mask

    def __len__(self) -> int:
        return len(self.only_nulls)


def cannot_match(term: Term, bounds: Bounds) -> Mask:
    """Return a mask of the ranges in which no row can satisfy a comparison."""
    data_type = bounds.minimum.type
    if term.value is None:
        return bounds.no_nulls.copy() if term.op in ("=", "==") else bounds.only_nulls.copy()
    try:
        term = term.bind(data_type)
        operands = [_literals(value, data_type, term.column) for value in term.values]
    except (QueryError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.zeros(len(bounds), np.bool_)
    if not all(_is_ordered(value) for forms in operands for value in forms):
        return bounds.only_nulls.copy()
    try:
        out = _outside(term.op, operands, bounds, data_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        out = np.zeros(len(bounds), np.bool_)
    return out | bounds.only_nulls


def _outside(op: str, operands: list[list[pa.Scalar]], bounds: Bounds, data_type: pa.DataType) -> Mask:
    if op in ("=", "=="):
        return _all_forms(operands[0], lambda value: _not_within(bounds, value, value))
    if op == "in":
        if not operands:
            return np.ones(len(bounds), np.bool_)
        if len(operands) > _MAX_VALUES:
            column = pa.array([forms[0].as_py() for forms in operands], operands[0][0].type)
            ends = pc.min_max(column)
            return _not_within(bounds, ends["min"], ends["max"])
        out = np.ones(len(bounds), np.bool_)
        for forms in operands:
            out &= _all_forms(forms, lambda value: _not_within(bounds, value, value))
        return out
    if op in ("<", "<="):
        compare = pc.greater_equal if op == "<" else pc.greater
        return _all_forms(operands[0], lambda value: numpy_mask(compare(bounds.minimum, value)))
    if pa.types.is_floating(data_type):
        return np.zeros(len(bounds), np.bool_)
    if op in (">", ">="):
        compare = pc.less_equal if op == ">" else pc.less
        return _all_forms(operands[0], lambda value: numpy_mask(compare(bounds.maximum, value)))
    if not (pa.types.is_integer(data_type) or pa.types.is_boolean(data_type) or pa.types.is_temporal(data_type)):
        return np.zeros(len(bounds), np.bool_)
    # != and not in: with a single excluded value.
    single = numpy_mask(pc.equal(bounds.minimum, bounds.maximum))
    hit = np.zeros(len(bounds), np.bool_)
    for forms in operands[:_MAX_VALUES]:
        hit |= numpy_mask(pc.equal(bounds.minimum, forms[0]))
    return single & hit


def _not_within(bounds: Bounds, low: pa.Scalar, high: pa.Scalar) -> Mask:
    """Return a mask of the ranges in which no value is from ``low`` to ``high``."""
    return numpy_mask(pc.greater(bounds.minimum, high)) | numpy_mask(pc.less(bounds.maximum, low))


def _all_forms(forms: list[pa.Scalar], test: Any) -> Mask:
    out: Mask = test(forms[0])
    for form in forms[1:]:
        out &= test(form)
    return out


def _literals(value: Any, data_type: pa.DataType, column: str) -> list[pa.Scalar]:
    """Return the forms of a value in comparisons with a column: in the column's type, and for float32 also as
    float64."""
    literals = [literal(value, data_type, column)]
    if pa.types.is_float32(data_type):
        literals.append(literal(value, pa.float64(), column))
    return literals


def _is_ordered(value: pa.Scalar) -> bool:
    """Return True if the order of a value is certain."""
    plain = value.as_py()
    if isinstance(plain, float):
        return not math.isnan(plain)
    if isinstance(plain, str):
        return all(byte < _FIRST_OUT_OF_ORDER for byte in plain.encode("utf-8", "surrogatepass"))
    return plain is not None
