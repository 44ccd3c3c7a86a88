"""Initial base files of a record index: the keys of a table at one instant, written by file group."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.arrow.arrays import contiguous
from pyhudi.config import Options, options
from pyhudi.errors import UnsupportedTableError
from pyhudi.index.row_estimates import estimated_rows
from pyhudi.metadata.file_groups.delta_commit_writer import GroupSlice
from pyhudi.metadata.metadata_layout import RECORD_INDEX, file_group_ids
from pyhudi.metadata.records.record_index_file_groups import (
    RecordIndexFileGroups,
    estimate_file_group_count,
    new_group_ids,
)
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.spark.indexes.key_ranges import ONE_RANGE, KeyRanges, range_count, sampled_files, task_count
from pyhudi.spark.indexes.record_index.record_index_keys import KeyRouting, file_keys, slice_keys
from pyhudi.spark.indexes.record_index.record_index_update import numbered_locations
from pyhudi.spark.indexes.record_index.record_index_writer import RecordIndexWrite, write_initial_keys
from pyhudi.spark.spark_errors import task_errors
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_slicing import has_log_files
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.timeline.instant import millis_of_instant
from pyhudi.write.write_checks import check_record_index


@dataclass(frozen=True, slots=True)
class InitialKeys:
    """Keys of a table at one instant, and the file groups of a record index over them.

    Attributes:
        spark: The session.
        table: The table at the instant.
        opts: Options of the build.
        slices: Its file slices (SLICE_SCHEMA).
        rows: Estimated number of rows in each base file.
        groups: File groups of the index.
    """

    spark: SparkSession
    table: TableSnapshot
    opts: Options
    slices: pa.Table
    rows: npt.NDArray[np.int64]
    groups: RecordIndexFileGroups

    @classmethod
    def from_table(cls, spark: SparkSession, table: TableSnapshot, opts: Options) -> InitialKeys:
        """List the files of the table, without reading keys. The index is partitioned unless the options request a
        global one.

        Raises:
            UnsupportedTableError: The files do not store keys, there is no file group, or tables of that version have
                no partitioned index.
        """
        check_record_index(table.config, opts)
        if not table.config.populate_meta_fields:
            raise UnsupportedTableError(
                "a record index needs base files with record keys (hoodie.populate.meta.fields=true)"
            )
        slices = FileSystemView.load(table).latest_slices()
        rows = estimated_rows(table.storage, slices)
        partitioned = not opts.get_typed(options.METADATA_GLOBAL_RECORD_INDEX_ENABLE)
        ids = _group_ids(opts, slices, rows, partitioned=partitioned)
        groups = RecordIndexFileGroups.from_ids(ids, partitioned=partitioned)
        if not len(groups):
            raise UnsupportedTableError(
                "a partitioned record index has file groups for each partition, but the table has none; write rows"
            )
        return cls(spark, table, opts, slices, rows, groups)

    def write(self, instant: str) -> list[WriteStat]:
        """Write the base files of the index at an instant of the metadata table. Return their write stats. Runs a Spark
        job.

        Raises:
            UnsupportedTableError: Keys are in several file groups.
        """
        slices, groups, config = self.slices, self.groups, self.table.config
        instants = contiguous(slices["base_instant"]).dictionary_encode()
        millis = pa.array([millis_of_instant(i, config.timezone) for i in instants.dictionary.to_pylist()], pa.int64())
        since = millis.take(instants.indices)
        files = numbered_locations(slices["partition"], slices["file_id"], slices["base_path"], since)
        if not files.num_rows:
            return []
        routing = KeyRouting(groups, task_count(len(groups), self.spark))
        routing = replace(routing, ranges=self._ranges(files, routing))
        target = RecordIndexWrite(
            self.table.storage, instant, config.version, groups, [GroupSlice(file_id) for file_id in groups.ids]
        )
        written = write_initial_keys(self._keys(files, routing), files, target, routing)
        check_no_duplicates(written.duplicates, groups)
        return written.stats

    def _ranges(self, files: pa.Table, routing: KeyRouting) -> KeyRanges:
        """Return the ranges in which keys are written; ``files`` as of `_keys`. Runs a Spark job if there are
        several."""
        count = range_count(int(self.rows.sum()), len(self.groups))
        if count == 1:
            return ONE_RANGE
        numbers = list(sampled_files(files.num_rows))
        sampled = replace(self, slices=self.slices.take(numbers))
        keys = sampled._keys(files.take(numbers), routing)
        with task_errors():
            return KeyRanges.from_sample(keys.select(RECORD_KEY), int(self.rows[numbers].sum()), count)

    def _keys(self, files: pa.Table, routing: KeyRouting) -> DataFrame:
        """Return the current keys of the table; ``files`` are the slices as numbered locations."""
        spark, table, opts = self.spark, self.table, self.opts
        has_logs = has_log_files(self.slices)
        parts = []
        base_only = files.filter(pc.invert(has_logs))
        if base_only.num_rows:
            invalid_text = opts.get_typed(options.READ_INVALID_TEXT)
            parts.append(file_keys(spark, table.storage, base_only, routing, invalid_text=invalid_text))
        if base_only.num_rows < files.num_rows:
            columns = resolve_table_schema(table)
            if columns is None:
                raise UnsupportedTableError("the table has log files, but no schema")
            names = column_names(table, columns.schema)
            context = slice_context(table, columns.schema, names=names, opts=opts)
            slices = self.slices.append_column("number", files["number"]).filter(has_logs)
            parts.append(slice_keys(spark, context, slices, routing))
        return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def check_no_duplicates(count: int, groups: RecordIndexFileGroups) -> None:
    if not count:
        return
    where = "several file groups of a partition" if groups.partitioned else "several file groups"
    cure = "" if groups.partitioned else ", or, if they are unique in their partitions, have a partitioned record index"
    raise UnsupportedTableError(
        f"{count} keys are in {where}, and a record index has one location per key; delete the duplicates{cure}"
    )


def _group_ids(opts: Options, slices: pa.Table, rows: npt.NDArray[np.int64], *, partitioned: bool) -> list[str]:
    """Return ids for the file groups of the index, by the number of rows in base files."""
    if not partitioned:
        return file_group_ids(RECORD_INDEX, global_group_count(opts, int(rows.sum())))
    min_groups = opts.get_typed(options.METADATA_PARTITIONED_RECORD_INDEX_MIN_GROUPS)
    max_groups = opts.get_typed(options.METADATA_PARTITIONED_RECORD_INDEX_MAX_GROUPS)
    counted = pa.table([slices["partition"], pa.array(rows)], names=["partition", "rows"])
    counts = counted.group_by("partition", use_threads=False).aggregate([("rows", "sum")])
    by_partition = zip(counts["partition"].to_pylist(), counts["rows_sum"].to_pylist(), strict=True)
    group_counts = {path: estimate_file_group_count(count, min_groups, max_groups) for path, count in by_partition}
    return new_group_ids(group_counts)


def global_group_count(opts: Options, rows: int) -> int:
    """Return the number of file groups of an index over the rows of all partitions."""
    min_groups = opts.get_typed(options.METADATA_RECORD_INDEX_MIN_GROUPS)
    max_groups = opts.get_typed(options.METADATA_RECORD_INDEX_MAX_GROUPS)
    return estimate_file_group_count(rows, min_groups, max_groups)
