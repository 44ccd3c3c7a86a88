"""Filters of loaded DataFrames reach the indexes of the table: ``spark.read.format("hudi").load(path).where(…)``.

A DataFrame that was loaded remembers the table, as it was then, and the query. A condition on it plans the query again,
without the partitions and files that cannot meet the condition, and Spark is told the names of the files that are left,
by its hidden column ``_metadata``: it does not open the others. The DataFrame keeps its columns, so that those of the
DataFrame before (``df.where(…).select(df.id)``) mean the same, and Spark applies the condition itself as ever.

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

from pyhudi.format.file_names import file_names_of
from pyhudi.read.filters.column_text import condition_text
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.sql_predicate import implied_predicate
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.keys.key_text import quoted_name

_ORIGIN, _READ = "_pyhudi_origin", "_pyhudi_read"
_METADATA_COLUMN = "_metadata"
MOST_NAMES = 1000
"""Files up to which they are named to Spark: every file is compared with the names."""


@dataclass(frozen=True, slots=True)
class FrameOrigin:
    """Origin of the rows of a DataFrame.

    Attributes:
        schema: Columns of the table.
        files: Number of files that the DataFrame reads.
        plan: Plans the query of the DataFrame with a filter, of the file slices that were found when it was loaded.
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
    """Extent of what a loaded DataFrame reads: the number of file slices, and the bytes of their files."""

    files: int
    size_bytes: int


def remember_read(frame: DataFrame, plan: ScanPlan) -> DataFrame:
    """Note how much a loaded DataFrame reads; returns it."""
    frame.__dict__[_READ] = PlannedRead(plan.tasks.num_rows, plan.size_bytes)
    return frame


def planned_read(frame: DataFrame) -> PlannedRead | None:
    """Return how much a DataFrame reads, as it was loaded; None if it was not."""
    found: PlannedRead | None = frame.__dict__.get(_READ)
    return found


def remember_origin(frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """Note where the rows of a DataFrame come from; returns it."""
    frame.__dict__[_ORIGIN] = origin
    return frame


def same_rows(frame: DataFrame, found: DataFrame, names: Sequence[Any]) -> DataFrame:
    """Note that a DataFrame has some of the columns of another one, under their names, and all of its rows; returns it.

    Args:
        frame: The DataFrame before.
        found: The one that has the columns, or is without them.
        names: What named the columns; where that is more than plain names of columns, nothing is noted.
    """
    origin: FrameOrigin | None = frame.__dict__.get(_ORIGIN)
    if origin is None:
        return found
    every = names[0] if len(names) == 1 and isinstance(names[0], (list, tuple)) else names
    plain = all(isinstance(name, str) and "." not in name and name in (*origin.schema.names, "*") for name in every)
    return remember_origin(found, origin) if plain else found


def filter_pruned(original: Callable[..., DataFrame], frame: DataFrame, condition: Any) -> DataFrame:
    """Filter a DataFrame by a condition; of a loaded one only files are read that may have such rows.

    Args:
        original: Spark's own ``where``.
        frame: The DataFrame.
        condition: SQL text or a Column.
    """
    origin: FrameOrigin | None = frame.__dict__.get(_ORIGIN)
    found = original(frame, condition)
    if origin is None or frame.is_cached:
        return found
    origin = replace(origin, conditions=(*origin.conditions, condition))
    text = condition
    if not isinstance(condition, str):
        text = condition_text(condition, origin.schema, lambda word: _is_name(frame, word))
    if text is None or implied_predicate(text, origin.schema) is None:
        return remember_origin(found, origin)
    origin = replace(origin, known=(*origin.known, text))
    return remember_origin(_of_files(original, found, origin), origin)


def _is_name(frame: DataFrame, word: str) -> bool:
    """Return True if Spark resolves a word as a name: of a column, an SQL variable, or a function such as
    ``current_date``."""
    try:
        _ = frame.select(sf.col(word)).schema
    except AnalysisException:
        return False
    return True


def _of_files(original: Callable[..., DataFrame], frame: DataFrame, origin: FrameOrigin) -> DataFrame:
    """The DataFrame without the files that cannot have rows of what is known."""
    plan = origin.plan(RowFilter(sql=" AND ".join(f"({one})" for one in origin.known)))
    tasks = plan.tasks
    if origin.merged is not None:
        if origin.merged.is_cached or (plan.key_rows is None and tasks.num_rows == origin.files):
            return frame
        return _read_instead(original, frame, origin.merged, origin.read(plan), origin.conditions)
    if not tasks.num_rows < origin.files or tasks.num_rows > MOST_NAMES or _METADATA_COLUMN in frame.columns:
        return frame
    names = file_names_of(tasks["base_path"]).to_pylist()
    try:
        return original(frame, sf.col(f"{_METADATA_COLUMN}.file_name").isin(*names) if names else sf.lit(False))
    except AnalysisException:  # the rows are not of files alone
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
