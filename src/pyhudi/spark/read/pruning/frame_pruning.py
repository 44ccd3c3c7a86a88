"""Pruning by filters on loaded DataFrames: ``spark.read.format("hudi").load(path).where(…)`` uses the indexes of the
table.

A loaded DataFrame holds the table, as of the load, and the query. A condition on the DataFrame plans the query again,
without the partitions and files in which no row can match it. The names of the remaining files become a filter on
Spark's
hidden column ``_metadata``, so Spark does not open the others. The DataFrame keeps its columns, so that references to
those of the
original DataFrame (``df.where(…).select(df.id)``) remain valid, and Spark applies the condition itself as well.

Rows of log files come from no file that Spark reads. Of a DataFrame with such rows another one is made that reads what
the plan says, and put in the place of the first: as a union of the first, of which a condition that is never true
leaves nothing, with the other. The columns of a union are those of its first part, and Spark's optimizer drops a part
without rows before anything of it is read.

What the condition implies is found out by `pyhudi.read.filters.sql_predicate`; where nothing is, or too many files are
left to name them, the filter is Spark's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.format.file_names import split_paths
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import implied_predicate
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.keys.key_text import quoted_name
from pyhudi.spark.read.pruning.column_text import condition_text

_ORIGIN, _READ = "_pyhudi_origin", "_pyhudi_read"
_HIDDEN = "_metadata"
MOST_NAMES = 1000
"""Maximum number of files whose names are listed in a filter: Spark compares each file with all names."""


@dataclass(frozen=True, slots=True)
class FrameOrigin:
    """Origin of the rows of a DataFrame.

    Attributes:
        schema: Columns of the table.
        files: Number of files that the DataFrame reads.
        plan: Plans the query of the DataFrame, of the table as it was when it was loaded, with a filter.
        read: Makes a DataFrame of such a plan, without its filter.
        merged: The DataFrame that was loaded, if it has rows of log files.
        conditions: The conditions that its rows meet by now.
        known: What is known of them as SQL.
    """

    schema: pa.Schema
    files: int
    plan: Callable[[RowFilter], ScanPlan]
    read: Callable[[ScanPlan], DataFrame]
    merged: DataFrame | None = None
    conditions: tuple[Any, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """Size of the read of a loaded DataFrame: the number of file slices, and the bytes of their files."""

    files: int
    size_bytes: int


def remember_read(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    """Attach the size of its read to a loaded DataFrame; return the DataFrame."""
    frame.__dict__[_READ] = PlannedRead(plan.tasks.num_rows, plan.size_bytes)
    return frame


def planned_read(frame: DataFrame) -> PlannedRead | None:
    """Return the size of the read of a DataFrame, as it was loaded; None if it was not loaded by pyhudi."""
    planned: PlannedRead | None = frame.__dict__.get(_READ)
    return planned


def remember_origin(frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """Attach the origin of its rows to a DataFrame; return the DataFrame."""
    frame.__dict__[_ORIGIN] = origin
    return frame


def same_rows(frame: DataFrame, found: DataFrame, names: Sequence[Any]) -> DataFrame:
    """Record that a DataFrame has a subset of the columns of another one, under their names, and all of its rows;
    return it.

    Args:
        frame: The original DataFrame.
        found: The DataFrame with the selected columns.
        names: Arguments that selected the columns; if they are more than plain column names, nothing is recorded.
    """
    origin: FrameOrigin | None = frame.__dict__.get(_ORIGIN)
    if origin is None:
        return found
    every = names[0] if len(names) == 1 and isinstance(names[0], (list, tuple)) else names
    plain = all(isinstance(name, str) and "." not in name and name in (*origin.schema.names, "*") for name in every)
    return remember_origin(found, origin) if plain else found


def filter_pruned(original: Callable[..., DataFrame], frame: DataFrame, condition: Any) -> DataFrame:
    """Filter a DataFrame by a condition; if it was loaded by pyhudi, only files that may have matching rows are read.

    Args:
        original: Spark's own ``where``.
        frame: The DataFrame.
        condition: SQL text or a Column.
    """
    origin: FrameOrigin | None = frame.__dict__.get(_ORIGIN)
    found = original(frame, condition)
    if origin is None or (origin.merged is not None and frame.is_cached):
        return found
    origin = replace(origin, conditions=(*origin.conditions, condition))
    text = condition if isinstance(condition, str) else condition_text(condition, origin.schema)
    if text is None or implied_predicate(text, origin.schema) is None:
        return remember_origin(filtered, origin)
    origin = replace(origin, known=(*origin.known, text))
    return remember_origin(_of_files(original, filtered, origin), origin)


def _of_files(original: Callable[..., DataFrame], frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """The DataFrame without the files that cannot have rows of what is known."""
    plan = origin.plan(RowFilter(sql=" AND ".join(f"({one})" for one in origin.known)))
    tasks = plan.tasks
    if origin.merged is not None:
        if origin.merged.is_cached or (plan.key_rows is None and tasks.num_rows == origin.files):
            return frame
        return _read_instead(original, frame, origin.merged, origin.read(plan), origin.conditions)
    if not tasks.num_rows < origin.files or tasks.num_rows > MOST_NAMES or _HIDDEN in frame.columns:
        return frame
    names = split_paths(tasks["base_path"])[1].to_pylist()
    try:
        return original(frame, sf.col(f"{_HIDDEN}.file_name").isin(*names) if names else sf.lit(False))
    except AnalysisException:  # the rows do not all come from files
        return frame


def _read_instead(
    original: Callable[..., DataFrame], frame: DataFrame, loaded: DataFrame, rows: DataFrame, conditions: Sequence[Any]
) -> DataFrame:
    """The DataFrame, which is the ``loaded`` one with conditions and maybe less columns, made of other ``rows``."""
    if rows.schema != loaded.schema:  # the columns of the union would be new ones
        return frame
    found = original(loaded, sf.lit(False)).union(rows)
    for condition in conditions:
        found = original(found, condition)
    names = frame.columns
    return found if names == loaded.columns else found.select(*map(quoted_name, names))
