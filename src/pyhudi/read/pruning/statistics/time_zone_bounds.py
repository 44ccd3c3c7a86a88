"""Bounds of values that depend on the time zone of the session that computed them.

An expression index does not record the time zone of its writers, and the planner of a query does not know that of the
session that evaluates its condition. A day in one zone may be the previous or next day in another: bounds are widened
by the maximum difference between two zones, or not used for cyclic values.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.indexes.expression_index_definition import IDENTITY, Expression
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds

_APART = 36 * 3600
"""Seconds: Java's zones range from -18:00 to +18:00."""
_MAX_DAYS = 2
_TEXTS = ("lower", "upper", "trim", "ltrim", "rtrim", "length", "substring", "regexp_replace", "regexp_extract")
_FIRST, _LAST = "1583", "9990"
"""Years in which texts of times have the order of the times, even if shifted."""
_SORTED = re.compile(r"yyyy(?:[-/ .:_,]*MM(?:[-/ .:_,]*dd(?:[-/ .:_,]*HH(?:[-/ .:_,]*mm(?:[-/ .:_,]*ss)?)?)?)?)?")
_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_UNITS = {"ss": 1, "mm": 60, "HH": 3600, "dd": 86400, "MM": 31 * 86400, "yyyy": 366 * 86400}


class Zones(Enum):
    """Dependence of the values of an expression on time zones."""

    NONE = "are the same in all zones"
    MOVED = "are later or earlier in another zone"
    ROUND = "depend on the time zone of their writer, which is not recorded"
    PARSED = "depend on how their writer parsed texts (spark.sql.legacy.timeParserPolicy), which is not recorded"


def zones_of(expression: Expression, column: pa.DataType) -> Zones:
    """Return the time zone dependence of an expression of a column of that type."""
    function, with_format = expression.function, any(part is not None for part in expression.arguments)
    instant = pa.types.is_timestamp(column) and column.tz is not None
    text, day = pa.types.is_string(column), pa.types.is_date32(column)
    plain = text or day or (pa.types.is_timestamp(column) and not instant)
    if text and (function == "unix_timestamp" or (function in ("to_date", "to_timestamp") and with_format)):
        return Zones.PARSED
    if function == IDENTITY or (function in _TEXTS and text):
        return Zones.NONE
    if function in ("month", "day"):
        return Zones.NONE if plain else Zones.ROUND
    if function == "hour":
        return Zones.NONE if plain and not text and not day else Zones.ROUND
    if function in ("year", "date_add", "date_sub", "to_date"):
        if not plain and not instant:
            return Zones.ROUND
        return Zones.NONE if plain else Zones.MOVED
    if function in ("unix_timestamp", "to_timestamp"):
        return Zones.NONE if instant else Zones.MOVED
    if function in ("date_format", "from_unixtime"):
        return Zones.MOVED if _SORTED.fullmatch(str(expression.arguments[0])) else Zones.ROUND
    return Zones.ROUND


def in_any_zone(bounds: Bounds, expression: Expression) -> Bounds:
    """Return bounds that are valid for values computed in any time zone, for `Zones.MOVED`."""
    data_type = bounds.minimum.type
    if pa.types.is_string(data_type):
        minimum, maximum = _texts(bounds, str(expression.arguments[0]))
    elif pa.types.is_int32(data_type):
        minimum, maximum = _numbers(bounds, 1)
    elif pa.types.is_int64(data_type):
        minimum, maximum = _numbers(bounds, _APART)
    else:
        apart = _MAX_DAYS if pa.types.is_date32(data_type) else _APART * 1_000_000
        width = pa.int32() if pa.types.is_date32(data_type) else pa.int64()
        plain = replace(bounds, minimum=bounds.minimum.view(width), maximum=bounds.maximum.view(width))
        minimum, maximum = (end.view(data_type) for end in _numbers(plain, apart))
    has_bounds = pc.and_(minimum.is_valid(), maximum.is_valid())
    none = pa.scalar(None, data_type)
    return replace(bounds, minimum=pc.if_else(has_bounds, minimum, none), maximum=pc.if_else(has_bounds, maximum, none))


def _numbers(bounds: Bounds, apart: int) -> tuple[pa.Array, pa.Array]:
    """Return numbers decreased and increased by the difference; null if they overflow."""
    data_type = bounds.minimum.type
    ends = np.iinfo(data_type.to_pandas_dtype())
    minimum = pc.if_else(pc.less(bounds.minimum, int(ends.min) + apart), pa.scalar(None, data_type), bounds.minimum)
    maximum = pc.if_else(pc.greater(bounds.maximum, int(ends.max) - apart), pa.scalar(None, data_type), bounds.maximum)
    by = pa.scalar(apart, data_type)
    return pc.subtract(minimum, by), pc.add(maximum, by)


def _texts(bounds: Bounds, pattern: str) -> tuple[pa.Array, pa.Array]:
    """Return times as texts, shifted back and forth by the maximum difference between zones; null for other texts."""
    form = pattern
    for letters, code in _LETTERS.items():
        form = form.replace(letters, code)
    smallest = next(letters for letters in _UNITS if letters in pattern)
    none = pa.scalar(None, pa.string())
    ends = []
    for texts, by in ((bounds.minimum, -_APART), (bounds.maximum, _APART + _UNITS[smallest])):
        usual = pc.and_(pc.greater(texts, _FIRST), pc.less(texts, _LAST))
        times = pc.strptime(pc.if_else(usual, texts, none), format=form, unit="s", error_is_null=True)
        moved = pc.add(times.view(pa.int64()), pa.scalar(by, pa.int64())).view(pa.timestamp("s"))
        ends.append(pc.strftime(moved, format=form))
    return ends[0], ends[1]
