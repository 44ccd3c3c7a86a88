"""Summary of an incoming batch, the basis for planning a lookup: one small aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import quoted


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """Summary of the rows of a write.

    Attributes:
        rows: Number of rows.
        partitions: Partition paths of the rows; empty for a global lookup.
        has_duplicates: Keys may occur more than once; never False if they do.
        nulls: Key fields that are null in some row.
        ranges: Minimum and maximum of key columns.
    """

    rows: int
    partitions: tuple[str, ...]
    has_duplicates: bool
    nulls: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def summarize(rows: DataFrame, fields: Sequence[str], *, global_keys: bool) -> BatchSummary:
    """Summarize a keyed batch. Runs one Spark job, which evaluates ``rows`` once.

    Args:
        rows: Keyed rows.
        fields: Key columns (numbers, dates) whose ranges are computed. Without any, the range of the key texts is
            computed instead.
        global_keys: A key is also repeated if it occurs in different partitions.

    Returns:
        The summary.
    """
    # Equal keys have equal hashes. Rarely, different keys do, too, which only costs a needless merge of duplicates.
    key = F.xxhash64(RECORD_KEY).alias("k") if fields else F.col(RECORD_KEY).alias("k")
    by = [key] if global_keys else [key, F.col(PARTITION_PATH).alias("p")]
    # A global lookup reads all partitions.
    partitions = F.array().cast("array<string>") if global_keys else F.collect_set("p")
    first: list[Column] = [F.count(F.lit(1)).alias("c")]
    second: list[Column] = [F.sum("c"), F.max("c"), partitions]
    for i, name in enumerate(fields):
        column = F.col(quoted([name]))
        first += [F.min(column).alias(f"a{i}"), F.max(column).alias(f"b{i}")]
        first.append(F.max(column.isNull().cast("int")).alias(f"n{i}"))
        second += [F.min(f"a{i}"), F.max(f"b{i}"), F.max(f"n{i}")]
    if not fields:
        second += [F.min("k"), F.max("k")]
    summary = rows.groupBy(*by).agg(*first).agg(*second).first()
    assert summary is not None
    ranges: dict[str, tuple[Any, Any]] = {}
    nulls: set[str] = set()
    for i, name in enumerate(fields):
        minimum, maximum, has_null = summary[3 + 3 * i : 6 + 3 * i]
        ranges[name] = (minimum, maximum)
        if has_null:
            nulls.add(name)
    if not fields:
        ranges[RECORD_KEY] = (summary[3], summary[4])
    return BatchSummary(summary[0] or 0, tuple(sorted(summary[2])), (summary[1] or 0) > 1, frozenset(nulls), ranges)
