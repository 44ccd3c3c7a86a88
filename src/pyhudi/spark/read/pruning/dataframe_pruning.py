"""Use of the table's indexes for filters of loaded DataFrames: ``spark.read.format("hudi").load(path).where(…)``.

A loaded DataFrame is associated with the snapshot of its table and its query. A condition on it plans the query again
without partitions and files that cannot contain matching rows. A condition on Spark's metadata column ``_metadata``
then restricts the scan to the names of the remaining files, and Spark does not open the others. The DataFrame keeps its
columns, so that columns of the original DataFrame remain valid (``df.where(…).select(df.id)``). Spark also applies the
condition itself.

Spark does not read log files itself. A DataFrame with rows of log files is replaced by a union: its first part is the
original DataFrame with a condition that is always false, and its second part a new DataFrame of the new plan. The
columns of a union are those of its first part, and Spark's optimizer drops a part without rows before it is read.

`pyhudi.read.filters.sql_predicate` determines what the condition implies. If it implies nothing, or if too many files
remain to name them, only Spark applies the filter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pyhudi.format.file_names import file_names_of
from pyhudi.read.filters.column_text import condition_text
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import implied_predicate
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.column_names import quoted_name
from pyhudi.spark.expected_errors import expected_errors

_ORIGIN, _READ = "_pyhudi_origin", "_pyhudi_read"
_METADATA_COLUMN = "_metadata"
MAX_NAMES = 1000
"""Files up to which they are named to Spark: every file is compared with the names."""


@dataclass(frozen=True, slots=True)
class FrameOrigin:
    """Origin of the rows of a DataFrame.

    Attributes:
        schema: Columns of the table.
        files: Number of files that the DataFrame reads.
        plan: Plans the query with a filter, for the file slices that were listed when the DataFrame was loaded.
        read: Creates a DataFrame of such a plan, without its filter.
        merged: The loaded DataFrame, if it has rows of log files.
        conditions: Conditions that have been applied to it.
        implied_sql: SQL text that these conditions imply.
    """

    schema: pa.Schema
    files: int
    plan: Callable[[RowFilter], ScanPlan]
    read: Callable[[ScanPlan], DataFrame]
    merged: DataFrame | None
    conditions: tuple[Any, ...] = ()
    implied_sql: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """Size of the read of a loaded DataFrame: the number of file slices, and the bytes of their files."""

    files: int
    size_bytes: int


def remember_read(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    """Record the size of the read of a loaded DataFrame. Return the DataFrame."""
    frame.__dict__[_READ] = PlannedRead(plan.tasks.num_rows, plan.size_bytes)
    return frame


def planned_read(frame: DataFrame) -> PlannedRead | None:
    """Return the size of the read of a loaded DataFrame; None for others."""
    planned: PlannedRead | None = frame.__dict__.get(_READ)
    return planned


def remember_origin(frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """Record the origin of the rows of a DataFrame. Return the DataFrame."""
    frame.__dict__[_ORIGIN] = origin
    return frame


def same_rows(frame: DataFrame, selected: DataFrame, names: Sequence[Any]) -> DataFrame:
    """Record that a DataFrame has all rows and some columns of another one, with the same names. Return it.

    Args:
        frame: The original DataFrame.
        selected: The DataFrame with or without the columns.
        names: Selected columns; if these are not just names, nothing is recorded.
    """
    origin: FrameOrigin | None = frame.__dict__.get(_ORIGIN)
    if origin is None:
        return selected
    columns = names[0] if len(names) == 1 and isinstance(names[0], (list, tuple)) else names
    plain = all(isinstance(name, str) and "." not in name and name in (*origin.schema.names, "*") for name in columns)
    return remember_origin(selected, origin) if plain else selected


def filter_pruned(original: Callable[..., DataFrame], frame: DataFrame, condition: Any) -> DataFrame:
    """Filter a DataFrame; for a loaded one, skip files that cannot contain matching rows.

    Args:
        original: Spark's own ``where``.
        frame: The DataFrame.
        condition: SQL text or a Column.
    """
    origin: FrameOrigin | None = frame.__dict__.get(_ORIGIN)
    filtered = original(frame, condition)
    if origin is None or frame.is_cached:
        return filtered
    origin = replace(origin, conditions=(*origin.conditions, condition))
    text = condition if isinstance(condition, str) else text_of_condition(frame, condition, origin.schema)
    if text is None or implied_predicate(text, origin.schema) is None:
        return remember_origin(filtered, origin)
    origin = replace(origin, implied_sql=(*origin.implied_sql, text))
    return remember_origin(_restrict_to_files(original, filtered, origin), origin)


def text_of_condition(frame: DataFrame, condition: Column, schema: pa.Schema) -> str | None:
    """Return a condition on a DataFrame as SQL text that is true for the same rows; None if that is not known."""
    return condition_text(condition, schema, lambda word: _is_name(frame, word))


def _is_name(frame: DataFrame, word: str) -> bool:
    """Return True if Spark resolves a word as a name: of a column, an SQL variable, or a function such as
    ``current_date``."""
    try:
        with expected_errors():
            _ = frame.select(sf.col(word)).schema
    except AnalysisException:
        return False
    return True


def _restrict_to_files(original: Callable[..., DataFrame], frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """Restrict the DataFrame to files that may contain rows that meet the known conditions."""
    plan = origin.plan(RowFilter(sql=" AND ".join(f"({condition})" for condition in origin.implied_sql)))
    tasks = plan.tasks
    if origin.merged is not None:
        if origin.merged.is_cached or (plan.key_rows is None and tasks.num_rows == origin.files):
            return frame
        return _read_instead(original, frame, origin.merged, origin.read(plan), origin.conditions)
    if not tasks.num_rows < origin.files or tasks.num_rows > MAX_NAMES or _METADATA_COLUMN in frame.columns:
        return frame
    names = file_names_of(tasks["base_path"]).to_pylist()
    try:
        with expected_errors():
            return original(frame, sf.col(f"{_METADATA_COLUMN}.file_name").isin(*names) if names else sf.lit(False))
    except AnalysisException:  # Not all rows come from files.
        return frame


def _read_instead(
    original: Callable[..., DataFrame], frame: DataFrame, loaded: DataFrame, rows: DataFrame, conditions: Sequence[Any]
) -> DataFrame:
    """Return the DataFrame, which is ``loaded`` with conditions and possibly fewer columns, with other ``rows``."""
    if rows.schema != loaded.schema:  # The columns of the union would be new ones.
        return frame
    filtered = original(loaded, sf.lit(False)).union(rows)
    for condition in conditions:
        filtered = original(filtered, condition)
    names = frame.columns
    return filtered if names == loaded.columns else filtered.select(*map(quoted_name, names))
