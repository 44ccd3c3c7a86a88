"""Pruning by filters on loaded DataFrames: ``spark.read.format("hudi").load(path).where(…)`` uses the indexes of the
table.

A loaded DataFrame holds the table, as of the load, and the query. A condition on the DataFrame plans the query again,
without the partitions and files in which no row can match it. The names of the remaining files become a filter on
Spark's
hidden column ``_metadata``, so Spark does not open the others. The DataFrame keeps its columns, so that references to
those of the
original DataFrame (``df.where(…).select(df.id)``) remain valid, and Spark applies the condition itself as well.

`pyhudi.read.filters.sql_predicate` derives the pruning filter from the condition. Where it derives none, where the rows
do not
come from files that Spark reads itself (log files), or where too many files remain to list their names, only Spark's
own filter
applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.format.file_names import split_paths
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import implied_predicate
from pyhudi.read.scan_plan import ScanPlan
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
        plan: Plans the query of the DataFrame with a filter, on the table as of the load.
        known: Conditions, as SQL, that all rows of the DataFrame match.
    """

    schema: pa.Schema
    files: int
    plan: Callable[[RowFilter], ScanPlan]
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
    filtered = original(frame, condition)
    if origin is None:
        return filtered
    text = condition if isinstance(condition, str) else condition_text(condition, origin.schema)
    if text is None or implied_predicate(text, origin.schema) is None:
        return remember_origin(filtered, origin)
    origin = replace(origin, known=(*origin.known, text))
    return remember_origin(_of_files(original, filtered, origin), origin)


def _of_files(original: Callable[..., DataFrame], frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """Return the DataFrame without the files in which no row can match the known conditions."""
    tasks = origin.plan(RowFilter(sql=" AND ".join(f"({one})" for one in origin.known))).tasks
    has_logs = pc.any(pc.greater(pc.list_value_length(tasks["log_paths"]), 0)).as_py()
    if has_logs or not tasks.num_rows < origin.files or tasks.num_rows > MOST_NAMES or _HIDDEN in frame.columns:
        return frame
    names = split_paths(tasks["base_path"])[1].to_pylist()
    try:
        return original(frame, sf.col(f"{_HIDDEN}.file_name").isin(*names) if names else sf.lit(False))
    except AnalysisException:  # the rows do not all come from files
        return frame
