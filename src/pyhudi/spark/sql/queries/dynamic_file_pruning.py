"""Dynamic file pruning: the keys of a small table prune files of the large table that it is joined with.

The keys are read when the query is planned, from the snapshot of the small table that the query reads, so that the
remaining files contain all rows that can match. They are passed to the indexes of the large table as
``column IN (…)``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ByteType, DateType, IntegerType, LongType, ShortType, StringType

from pyhudi.config import Options, options
from pyhudi.spark.column_names import quoted
from pyhudi.spark.read.pruning.dataframe_pruning import planned_read
from pyhudi.sql.conditions.runtime_filter_keys import JoinKey
from pyhudi.sql.token_cursor import Cursor

MAX_KEYS = 1000
"""Maximal number of rows of the small table."""
_SMALLER = 2
"""Minimal ratio of the size of the large table's files to that of the small one's."""
_MAX_BYTES = 16 * 1024 * 1024
"""Maximal size of the small table's files in bytes."""
_KINDS = (StringType, ByteType, ShortType, IntegerType, LongType, DateType)


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that a query reads.

    Attributes:
        rows: Its rows, of the snapshot that the query reads.
        predicate: Predicate of the query on them.
    """

    rows: DataFrame
    predicate: str | None


def runtime_filter(
    spark: SparkSession, large: DataFrame, joined: tuple[JoinKey, ...], reads: Mapping[int, TableRead]
) -> str | None:
    """Return a predicate on a large table from the join keys of smaller ones, as SQL; None if none would prune enough.

    Runs a small Spark job for each such table.

    Args:
        spark: The session.
        large: The rows of the table.
        joined: Its join keys.
        reads: The tables that the query reads, by the positions of their references.
    """
    parts = [
        text
        for key in joined
        if (small := reads.get(key.other)) is not None and _is_worthwhile(spark, large, small.rows)
        if (text := _among(large, key, small)) is not None
    ]
    return " AND ".join(parts) or None


def _is_worthwhile(spark: SparkSession, large: DataFrame, small: DataFrame) -> bool:
    read, keys = planned_read(large), planned_read(small)
    if read is None or keys is None or read.files < 2 or keys.size_bytes > _MAX_BYTES:
        return False
    option = options.SQL_JOIN_PRUNING_MIN_BYTES
    min_bytes = spark.conf.get(option.key, None)
    threshold = Options.parse({} if min_bytes is None else {option.key: min_bytes}).get_typed(option)
    return read.size_bytes >= max(threshold, _SMALLER * keys.size_bytes)


def _among(large: DataFrame, key: JoinKey, small: TableRead) -> str | None:
    """Return the condition that a column has one of the keys; None if these are too many, of another type, or depend on
    columns of an outer query."""
    column, other = _field(large, key.column), _field(small.rows, key.other_column)
    if column is None or other is None or column.dataType != other.dataType or not isinstance(other.dataType, _KINDS):
        return None
    if small.predicate is not None and not _has_columns(small.rows, small.predicate):
        return None
    rows = small.rows if small.predicate is None else small.rows.where(small.predicate)
    name = quoted([other.name])
    keys = rows.select(name).where(sf.col(name).isNotNull()).limit(MAX_KEYS + 1).collect()
    values = {row[0] for row in keys}
    literals = [_literal(value) for value in values]
    if len(keys) > MAX_KEYS or None in literals:
        return None
    return f"{quoted([column.name])} IN ({', '.join(sorted(map(str, literals)))})" if literals else None


def _field(frame: DataFrame, name: str) -> Any:
    """Return the column with a name, ignoring case; None if there is no such column."""
    return next((field for field in frame.schema.fields if field.name.lower() == name.lower()), None)


def _has_columns(frame: DataFrame, predicate: str) -> bool:
    """Return True if all columns of a pushed predicate, which are quoted there, are columns of the table. An
    unqualified name in a subquery may be a column of the outer query."""
    quoted_names = (token.text for token in Cursor(predicate).tokens if token.kind == "IDENTIFIER")
    return all(_field(frame, name) is not None for name in quoted_names)


def _literal(value: Any) -> str | None:
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if not isinstance(value, str):
        return str(value)
    return None if any(sign in value for sign in ("'", '"', "\\", "${")) else f"'{value}'"
