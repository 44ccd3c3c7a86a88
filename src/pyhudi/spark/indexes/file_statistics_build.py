"""Initial builds of file statistics and bloom filters on Spark: tasks read files and create the records, Spark sorts
them, and one task for each file group of the metadata table streams them to its file.

The driver holds the file names, the write stats and, for partition statistics, one row of bounds
for each partition. Filters are spilled to the disks of the executors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from pyhudi.arrow.group_runs import group_runs
from pyhudi.arrow.ipc import table_from_bytes, table_to_bytes
from pyhudi.metadata.file_groups.hfile_sources import MetadataSlice
from pyhudi.metadata.maintenance.metadata_compaction_job import MetadataCompactionJob
from pyhudi.metadata.records.file_group_hash import file_group_index_of
from pyhudi.metadata.records.record_factory import joined_bounds
from pyhudi.metadata.writer.file_records import FileRecords
from pyhudi.metadata.writer.file_statistics import BOUNDS
from pyhudi.metadata.writer.initial_statistics import FILE_FIELDS, FILTERS_TOGETHER, LOCAL, PARTITION, InitialFileGroups
from pyhudi.spark.execution.arrow_batch_limits import MAX_ROWS
from pyhudi.spark.execution.local_relations import spread_frame
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.slice_tasks import file_task_count
from pyhudi.spark.execution.task_inputs import run_in_tasks
from pyhudi.spark.execution.task_placement import placement_keys
from pyhudi.spark.indexes.key_ranges import task_count
from pyhudi.spark.session_settings import session_setting
from pyhudi.spark.spark_errors import task_errors
from pyhudi.timeline.commit_metadata import WriteStat

FEW = 2_000
"""Number of files up to which they are read by threads of the driver: this takes a few seconds, like the two Spark jobs
would."""
_FILES_A_TASK = 256
_FILES_TOGETHER = 512

_TASK, _GROUP, _KEY, _VALUE = "task", "group", "key", "value"
_ROWS = f"{_TASK} int, {_GROUP} int, {_KEY} string, {_VALUE} binary"
_DONE = "stat string, bounds binary"


@dataclass(frozen=True, slots=True)
class SparkFileStatsReader:
    """Reader that reads files in Spark tasks, unless there are few
    (`pyhudi.metadata.writer.initial_statistics.FileStatsReader`)."""

    spark: SparkSession

    def statistics(
        self, records: FileRecords, files: pa.Table, groups: InitialFileGroups | None
    ) -> tuple[list[WriteStat], pa.Table]:
        """Read the statistics of files. Each partition of the files comes in one row."""
        if files.num_rows <= FEW:
            return LOCAL.statistics(records, files, groups)
        # consecutive files go to the same task, so that each task reads few partitions
        stats, bounds = self._run(files.sort_by(PARTITION), records, groups, _statistics)
        return stats, pa.concat_tables(bounds)

    def blooms(self, records: FileRecords, files: pa.Table, groups: InitialFileGroups) -> list[WriteStat]:
        if files.num_rows <= FEW:
            return LOCAL.blooms(records, files, groups)
        return self._run(files, records, groups, _blooms, batch_rows=FILTERS_TOGETHER)[0]

    def compact_metadata(self, job: MetadataCompactionJob) -> list[WriteStat]:
        """Run a compaction of the metadata table on the executors, one task for each slice
        (`pyhudi.metadata.maintenance.metadata_compaction_job.MetadataCompactor`)."""
        settings = replace(job, slices=())

        def compact(one: MetadataSlice) -> bytes:
            context = TaskContext.get()
            return json.dumps(settings.run(one, 0 if context is None else context.attemptNumber())).encode()

        return [json.loads(stat) for stat in run_in_tasks(self.spark, job.slices, compact)]

    def _run(
        self,
        files: pa.Table,
        records: FileRecords,
        groups: InitialFileGroups | None,
        read: Callable[[FileRecords, _FileLocations, pa.Table], Batches],
        batch_rows: int | None = None,
    ) -> tuple[list[WriteStat], list[pa.Table]]:
        """Run the Spark job; return the write stats, and the bounds of partitions if there are any."""
        spark = self.spark
        locations = _FileLocations.for_groups(0 if groups is None else len(groups.ids), spark)

        def read_files(batches: Iterable[pa.RecordBatch]) -> Batches:
            for batch in batches:
                yield from read(records, locations, pa.Table.from_batches([batch]))

        def write_groups(batches: Iterable[pa.RecordBatch]) -> Batches:
            for number, parts in groupby(group_runs(batches, _GROUP), itemgetter(0)):
                entries = ((part.column(_KEY), part.column(_VALUE)) for _, part in parts)
                if number == locations.bounds:
                    yield _result_batch(None, _encode_bounds(entries))
                else:
                    assert groups is not None
                    yield _result_batch(groups.write_sorted(number, entries), None)

        readers = file_task_count(spark, files.num_rows // _FILES_A_TASK)
        rows = map_in_arrow(spread_frame(spark, files.select(FILE_FIELDS), readers), read_files, _ROWS)
        moved = rows.repartition(locations.tasks, _TASK).sortWithinPartitions(_GROUP, _KEY)
        setting = nullcontext() if batch_rows is None else session_setting(spark, MAX_ROWS, str(batch_rows))
        with setting, task_errors():
            done = map_in_arrow(moved, write_groups, _DONE).collect()
        stats = [json.loads(row[0]) for row in done if row[0] is not None]
        return stats, [table_from_bytes(bytes(row[1])) for row in done if row[1] is not None]


@dataclass(frozen=True, slots=True)
class _FileLocations:
    """Assignment of rows to tasks: numbers below ``bounds`` are file groups, ``bounds`` itself stands for the bounds of
    partitions; ``keys`` are the placement keys of the tasks."""

    bounds: int
    keys: npt.NDArray[np.int32]

    @classmethod
    def for_groups(cls, groups: int, spark: SparkSession) -> _FileLocations:
        return cls(groups, np.array(placement_keys(task_count(groups + 1, spark)), np.int32))

    @property
    def tasks(self) -> int:
        return len(self.keys)

    def rows(self, numbers: npt.NDArray[np.int32], keys: pa.Array, values: pa.Array) -> pa.RecordBatch:
        """Return rows (_ROWS) for the groups with these numbers."""
        tasks = self.keys[numbers % self.tasks]
        return pa.RecordBatch.from_arrays(
            [pa.array(tasks), pa.array(numbers), keys, values], names=[_TASK, _GROUP, _KEY, _VALUE]
        )


def _statistics(records: FileRecords, locations: _FileLocations, files: pa.Table) -> Batches:
    for start in range(0, files.num_rows, _FILES_TOGETHER):
        some = files.slice(start, _FILES_TOGETHER)
        bounds = records.bounds(some)
        if locations.bounds:
            made = records.column_stats(some, bounds)
            yield locations.rows(file_group_index_of(made.keys, locations.bounds), made.keys, made.values)
        joined = table_to_bytes(joined_bounds(pa.table([some[PARTITION], bounds], names=[PARTITION, BOUNDS])))
        number = np.array([locations.bounds], np.int32)
        yield locations.rows(number, pa.array([""]), pa.array([joined], pa.binary()))


def _blooms(records: FileRecords, locations: _FileLocations, files: pa.Table) -> Batches:
    for start in range(0, files.num_rows, FILTERS_TOGETHER):
        made = records.blooms(files.slice(start, FILTERS_TOGETHER))
        yield locations.rows(file_group_index_of(made.keys, locations.bounds), made.keys, made.values)


def _encode_bounds(entries: Iterable[tuple[pa.Array, pa.Array]]) -> bytes:
    """Return the bounds of partitions as bytes; entries of the same partition are merged."""
    bounds = [table_from_bytes(one) for _, part in entries for one in part.to_pylist()]
    return table_to_bytes(joined_bounds(pa.concat_tables(bounds)))


def _result_batch(stat: WriteStat | None, bounds: bytes | None) -> pa.RecordBatch:
    text = None if stat is None else json.dumps(stat)
    columns = [pa.array([text], pa.string()), pa.array([bounds], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["stat", "bounds"])
