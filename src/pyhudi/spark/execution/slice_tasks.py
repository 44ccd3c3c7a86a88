"""Distribution of file slices to Spark tasks: an Arrow table cut into pieces, one for each task."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.arrow.arrays import list_sums
from pyhudi.arrow.ipc import table_from_bytes, table_to_bytes
from pyhudi.merge.file_slice import FileSlice
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.execution.task_inputs import rows_of_inputs
from pyhudi.spark.session_settings import shuffle_partitions

_LARGEST_PIECE = 64 * 1024 * 1024
_OPENING = 4 * 1024 * 1024
"""Cost of opening the files of a slice, as a number of bytes that could be read in that time, as in Spark itself."""
_DEFAULT_PARALLELISM = 16
WHOLE, KEYS, LOGS = 1.0, 0.2, 0.0
"""Part of a base file that a task reads: all of it; its keys, which are about a fifth; nothing, only log files."""
_LOCAL = re.compile(r"local(?:\[(\d+|\*)[,\]]|$)")

SliceWork = Callable[[FileSlice], Iterator[pa.RecordBatch]]
RowWork = Callable[[Mapping[str, Any]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class SlicePieces:
    """File slices for tasks.

    Attributes:
        pieces: The n-th is a compressed Arrow stream of the slices for the n-th task.
        from_path: Columns whose values are given by partition paths; those of the i-th are in ``value_<i>``, valid
            where ``is_exact_<i>`` is true.
    """

    pieces: tuple[bytes, ...]
    from_path: tuple[str, ...] = ()

    @classmethod
    def from_plan(cls, plan: ScanPlan, parallelism: int, *, part: float = WHOLE) -> SlicePieces:
        """Return the slices of a plan, large ones first. ``part``: part of the base files that is read."""
        made = cls.from_slices(_with_path_values(plan), parallelism, part=part)
        return replace(made, from_path=tuple(plan.partition_columns.values))

    @classmethod
    def from_slices(cls, slices: pa.Table, parallelism: int, *, part: float = WHOLE) -> SlicePieces:
        """Return slices (`pyhudi.table.view.file_slicing.SLICE_SCHEMA`) without values of partition paths, as
        `from_plan`."""
        return cls(cut_rows(slices, bytes_to_read(slices, part=part), parallelism))


def piece_numbers(tasks: pa.Table, parallelism: int = _DEFAULT_PARALLELISM, *, part: float = WHOLE) -> list[np.ndarray]:
    """Return the numbers of the slices of each piece, large slices first. ``part`` as in `SlicePieces.from_plan`."""
    return _numbers_by_size(bytes_to_read(tasks, part=part), parallelism)


def cut_rows(rows: pa.Table, sizes: np.ndarray, parallelism: int) -> tuple[bytes, ...]:
    """Return the rows of a table in pieces for tasks, large ones first, as compressed Arrow streams. ``sizes``: number
    of bytes to read for each row."""
    rows = rows.combine_chunks()  # each take() joins them again
    pieces = (rows.take(pa.array(numbers)) for numbers in _numbers_by_size(sizes, parallelism))
    return tuple(table_to_bytes(piece, "lz4") for piece in pieces)  # zstd takes four times as long for a few rows


def _numbers_by_size(sizes: np.ndarray, parallelism: int) -> list[np.ndarray]:
    """Return the numbers of the rows of each piece."""
    sizes = sizes + _OPENING
    order = np.argsort(-sizes, kind="stable")
    # starting a task costs as much as reading some twenty small slices: use more tasks than can run at a time only for
    # large inputs
    target = min(_LARGEST_PIECE, max(_OPENING, -(-int(sizes.sum()) // parallelism)))
    # by the bytes before each slice: one slightly larger than its share would otherwise leave a task without work
    piece = (np.cumsum(sizes[order]) - sizes[order]) // target if len(order) else order
    cuts = np.flatnonzero(np.diff(piece, prepend=-1))
    return np.split(order, cuts[1:]) if len(order) else []


def bytes_to_read(tasks: pa.Table, *, part: float) -> np.ndarray:
    """Return the number of bytes to read for each slice. ``part``: part of its base file that is read as well."""
    sizes: np.ndarray = pc.fill_null(tasks["base_size"], 0).to_numpy() * part + list_sums(tasks["log_sizes"]).to_numpy()
    return sizes.astype(np.int64)


def run_on_slices(spark: SparkSession, pieces: SlicePieces, work: SliceWork, schema: pa.Schema) -> DataFrame:
    """Run ``work`` on each slice, in one task for each piece. ``work`` is pickled with everything that it
    references."""
    from_path = pieces.from_path

    def work_on(row: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        values = {name: row[f"value_{i}"] for i, name in enumerate(from_path) if row[f"is_exact_{i}"]}
        return work(FileSlice.from_row(row, values))

    return run_on_rows(spark, pieces.pieces, work_on, schema)


def run_on_rows(spark: SparkSession, pieces: tuple[bytes, ...], work: RowWork, schema: pa.Schema) -> DataFrame:
    """Run ``work`` on each row of the pieces (`cut_rows`), in one task for each piece, as `run_on_slices`."""

    def work_on(piece: bytes) -> Iterator[pa.RecordBatch]:
        for row in table_from_bytes(piece).to_pylist():
            yield from work(row)

    return rows_of_inputs(spark, pieces, work_on, schema)


def parallelism(spark: SparkSession) -> int:
    """Return an estimate of the number of tasks that run at a time, from the settings of the session."""
    for key in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        value = spark.conf.get(key, None)
        if value is not None and value.isdigit():
            return max(1, int(value))
    local = _LOCAL.match(spark.conf.get("spark.master", "") or "")
    if local is not None:
        return int(local[1] or 1) if local[1] != "*" else os.cpu_count() or 1
    return _DEFAULT_PARALLELISM


def file_task_count(spark: SparkSession, files: int) -> int:
    """Return the number of tasks that read a number of files: one for each, and at most four for each shuffle partition
    of the session."""
    return max(1, min(files, 4 * shuffle_partitions(spark)))


def coalesced(summary: DataFrame) -> DataFrame:
    """Return an aggregate with few rows in as many partitions as tasks run at a time.

    Without adaptive execution, which Spark switches off in streams, it would take ``spark.sql.shuffle.partitions``
    (200) tasks, most of them without rows.
    """
    return summary.coalesce(parallelism(summary.sparkSession))


def _with_path_values(plan: ScanPlan) -> pa.Table:
    slices = plan.tasks.combine_chunks()
    if not plan.partition_columns.values:
        return slices
    which = pc.index_in(slices["partition"], value_set=plan.partition_columns.paths)
    for i, from_path in enumerate(plan.partition_columns.values.values()):
        slices = slices.append_column(f"value_{i}", from_path.values.take(which.combine_chunks()))
        slices = slices.append_column(f"is_exact_{i}", from_path.is_exact.take(which.combine_chunks()))
    return slices
