"""Single scan by Spark of base files and merged log rows.

Merged log rows are written to Parquet files once (`pyhudi.spark.read.merge_on_read.merged_log_cache`). Spark's
vectorized reader reads them together with the base files, with column pruning, filter push-down and partition pruning,
and without a union, which Spark does not compile together with the operators above it. An anti join with bitmaps
excludes the base rows that the logs replace. No rows are processed in Python, and later queries of the snapshot reuse
the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyhudi.config import Options, options
from pyhudi.config.enums import PartitionValues, ReadEngine
from pyhudi.merge.file_slice import FileSlice, SliceContext
from pyhudi.merge.log_changed_rows import BASE_POSITION
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.spark.execution.slice_tasks import KEYS, SlicePieces, parallelism, run_on_slices
from pyhudi.spark.helper_columns import SCANNED_FILE, SCANNED_ROW
from pyhudi.spark.read.base_files.base_file_scan import ScanExtras, can_number_rows, read_natively
from pyhudi.spark.read.base_files.partition_columns import partition_columns
from pyhudi.spark.read.base_files.partition_folders import mounted_external_path
from pyhudi.spark.read.base_files.spark_file_reader import FileReader, read_settings
from pyhudi.spark.read.merge_on_read.deletion_vectors import (
    BITMAP_SCHEMA,
    LARGEST_WITH_BITMAPS,
    DeletionVectors,
    deletion_vectors_for,
    without_row_numbers,
)
from pyhudi.spark.read.merge_on_read.merged_log_cache import CachedLogs, MergedLogCache, cache_keys, merged_log_cache
from pyhudi.spark.read.merge_on_read.merged_log_files import (
    NAME,
    REPLACED_SCHEMA,
    STATUS_SCHEMA,
    WORDS,
    WriteMergedLogs,
)
from pyhudi.spark.read.merge_on_read.single_scan_cache import frame_key, scan_frames
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.spark_types import spark_schema

_MAX_SLICES = 1000
"""Slices with log files up to which the driver keeps a cache entry for each."""
_MAX_FILES = 10_000
"""Files of a query up to which those without logs are read by the same scan."""


def single_scan(scan: SparkScan, *, merges: bool, positions: bool = False) -> DataFrame | None:
    """Read slices some of which have log files.

    Runs a Spark job that merges logs that are not in the cache, if they are read repeatedly.

    Args:
        scan: The scan.
        merges: Logs may be merged.
        positions: Add `SCANNED_ROW` as the last column: the position of the base row, also of that which a row of the
            logs replaces; `NO_BASE_ROW` if there is none.

    Returns:
        The unfiltered rows with all columns of the table. None if Spark cannot scan the slices, or if logs are not in
        the cache and are not merged, because they are read for the first time or are too large to be merged before rows
        are requested.
    """
    spark, storage, plan = scan.spark, scan.table.storage, scan.plan
    with_logs = plan.with_logs()
    if plan.merging is None or not _can_be_scanned(scan, with_logs):
        return None
    context = plan.merging.context
    cache = merged_log_cache(spark, storage, scan.opts)
    if cache is None:
        return None
    slices = [FileSlice.from_row(row) for row in with_logs.tasks.to_pylist()]
    keys = cache_keys(storage, context, slices)
    logs = cache.find(keys.values())
    absent = [group for group, key in keys.items() if key not in logs]
    if absent:
        if not (merges and _is_worth_merging(cache, with_logs, [keys[group] for group in absent], scan.opts)):
            return None
        if not _are_numbered_by_folders(scan):
            return None
        logs |= _merge_logs(scan.with_plan(_only(with_logs, absent)), context, cache, keys)
    of_slices = [(one, logs[keys[one.partition, one.file_id]]) for one in slices]
    key = frame_key(scan, logs, positions=positions)
    return scan_frames(spark).find_or_make(key, lambda: _read(scan, cache, of_slices, positions=positions))


def _can_be_scanned(scan: SparkScan, with_logs: ScanPlan) -> bool:
    """Return True if Spark can number the rows of all base files, and there are not too many files."""
    plan = scan.plan
    if plan.commit_times is not None or scan.engine is ReadEngine.ARROW:
        return False
    if (
        scan.opts.get_typed(options.READ_PARTITION_VALUES) is PartitionValues.FILE
        or plan.bootstrapped()[0].tasks.num_rows
    ):
        return False
    if plan.tasks.num_rows > _MAX_FILES or with_logs.tasks.num_rows > _MAX_SLICES:
        return False
    if (pc.sum(with_logs.tasks["base_size"]).as_py() or 0) > LARGEST_WITH_BITMAPS:
        return False
    return can_number_rows(plan.tasks["base_path"], plan.schema.names)


def _are_numbered_by_folders(scan: SparkScan) -> bool:
    sources = partition_columns(scan, numbered=True)
    return sources is not None and all(source.numbered for source in sources)


def _is_worth_merging(cache: MergedLogCache, plan: ScanPlan, absent: Sequence[str], opts: Options) -> bool:
    """Return True if the slices that are not in the cache are read repeatedly, and there is room for them."""
    size = pc.sum(pc.list_flatten(plan.tasks["log_sizes"])).as_py() or 0
    if size > opts.get_typed(options.READ_LOG_CACHE_MAX_LOG_BYTES):
        return False
    return cache.is_repeated(absent) and cache.has_room()


def _only(plan: ScanPlan, groups: Sequence[tuple[str, str]]) -> ScanPlan:
    """Return the plan for the slices of some file groups."""
    selected = set(groups)
    pairs = zip(plan.tasks["partition"].to_pylist(), plan.tasks["file_id"].to_pylist(), strict=True)
    return plan.select_slices(pa.array([i for i, pair in enumerate(pairs) if pair in selected], pa.int64()))


def _merge_logs(
    scan: SparkScan, context: SliceContext, cache: MergedLogCache, keys: dict[tuple[str, str], str]
) -> dict[str, CachedLogs]:
    """Merge the logs of slices and add them to the cache. Runs a Spark job."""
    groups = {key: group for group, key in keys.items()}
    pieces = SlicePieces.from_plan(scan.plan, parallelism(scan.spark), part=KEYS)
    status = run_on_slices(scan.spark, pieces, WriteMergedLogs(context, cache.storage, keys), STATUS_SCHEMA)
    with task_errors():
        written = {key: CachedLogs(*logs) for key, *logs in status.collect()}
    for key, logs in written.items():
        cache.add(key, (scan.table.storage.uri(), *groups[key]), logs)
    return written


def _read(
    scan: SparkScan, cache: MergedLogCache, logs: Sequence[tuple[FileSlice, CachedLogs]], *, positions: bool
) -> DataFrame | None:
    if not _are_numbered_by_folders(scan):
        return None
    plan = scan.plan
    base = plan.tasks.filter(pc.is_valid(plan.tasks["base_path"]))
    with_rows = [(one, each) for one, each in logs if each.rows is not None]
    merged = _as_tasks(base.schema, cache, with_rows)
    form = deletion_vectors_for(pa.concat_tables([base, merged]), large=False)
    if form is None:
        return None
    required = scan.engine is ReadEngine.SPARK
    with_base = scan.with_plan(replace(plan, tasks=base))
    replaced = [each.replaced for _, each in logs if each.replaced is not None]
    extras = ScanExtras(form.files, files=merged, base_positions=positions)
    rows = read_natively(with_base, required=required, extras=extras)
    if rows is None:
        return None
    if replaced:
        rows = form.exclude(rows, _replaced_rows(scan.spark, cache, replaced, form))
    if not positions:
        return without_row_numbers(rows)
    position = sf.coalesce(sf.col(BASE_POSITION), sf.col(SCANNED_ROW))
    return rows.withColumn(SCANNED_ROW, position).drop(BASE_POSITION, SCANNED_FILE)


def _as_tasks(schema: pa.Schema, cache: MergedLogCache, logs: Sequence[tuple[FileSlice, CachedLogs]]) -> pa.Table:
    """Return the files of merged rows as slices without log files."""
    rows = [
        {
            "partition": one.partition,
            "file_id": one.file_id,
            "base_instant": one.base_instant,
            "base_path": mounted_external_path(cache.storage.uri(each.rows or ""), one.partition),
            "base_size": each.rows_size,
            "log_paths": [],
            "log_sizes": [],
        }
        for one, each in logs
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def _replaced_rows(
    spark: SparkSession, cache: MergedLogCache, paths: Sequence[str], form: DeletionVectors
) -> DataFrame:
    uris = [cache.storage.uri(path) for path in paths]
    with read_settings(spark, len(uris), uris[0]):
        deletes = FileReader(spark, spark_schema(REPLACED_SCHEMA)).read(uris)
    number, words = BITMAP_SCHEMA.names
    return deletes.select(form.files.number_of_name(sf.col(NAME)).alias(number), sf.col(WORDS).alias(words))
