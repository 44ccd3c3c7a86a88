"""Rows of a batch, tagged with the file groups of their records and counted by these."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.index.record_index import RecordIndex
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.execution.slice_tasks import parallelism
from pyhudi.spark.lookup.key_constraint import CheckedBatch, KeyConstraintError, has_action
from pyhudi.spark.lookup.record_index.record_index_lookup import BatchLocations
from pyhudi.spark.lookup.tagging import BatchDeduplication, TaggedRows
from pyhudi.spark.write.dml_commit import NewRecords, RowChanges, RowOrigin, RowPositions
from pyhudi.spark.write.plans.file_groups.row_routing import count_rows
from pyhudi.spark.write.plans.file_groups.row_tagging import tag_rows
from pyhudi.spark.write.plans.file_groups.table_state import TableState
from pyhudi.spark.write.plans.write_plan import without_key_indexes
from pyhudi.spark.write.row_change_locations import (
    located_changes,
    positions_are_current,
    uncounted,
    with_base_paths,
)
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.write.location_columns import FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.planning.log_file_summary import LogContents
from pyhudi.write.row_action import DELETING, RowAction
from pyhudi.write.write_result import ChangeCounts

_GROUPS_PER_CORE = 4
"""File groups for each core up to which rows of a statement need no count: tasks without rows cost less."""


@dataclass(frozen=True, slots=True)
class TaggedBatch:
    """Tagged rows of a batch, and the file groups to which they go.

    Attributes:
        rows: The rows.
        counts: Their numbers by file group (COUNTS_SCHEMA).
        by_key: Rows have file groups, but no positions.
        index_locations: Locations of all keys in the record index, if no others are needed.
        is_counted: Each file group of `counts` has as many rows; False: it may have any number, or none.
        adaptive: The plan of the rows may improve while it is executed.
        inconsistencies: Contradictions found in the record index.
        changes: Numbers of the rows that a statement changes; None: not counted.
    """

    rows: DataFrame
    counts: pa.Table
    by_key: bool
    index_locations: BatchLocations | None = None
    is_counted: bool = True
    adaptive: bool = True
    inconsistencies: tuple[str, ...] = ()
    changes: ChangeCounts | None = None


@dataclass(frozen=True, slots=True)
class BatchTagger:
    """Tags the rows of a batch, and counts them.

    Attributes:
        table: State of the table.
        cached: Persists DataFrames that are evaluated more than once.
        records: The record index in which keys are looked up; None: in files.
        metadata_partitions: Partitions of the metadata table, which may need the individual keys.
    """

    table: TableState
    cached: CachedFrames
    records: RecordIndex | None
    metadata_partitions: Collection[str]

    def by_key(self, rows: DataFrame, checked: CheckedBatch | None) -> TaggedBatch:
        """Tag rows by their keys, and count them. ``checked``: the rows, if they were checked.

        Raises:
            KeyConstraintError: There are conditional rows, and the lookup may find records that are deleted.
        """
        conditional = checked is not None and checked.conditional
        if conditional and not self._finds_only_records:
            raise KeyConstraintError("the lookup may find keys without a record, on which actions of rows depend")
        if conditional:  # a delete of a key that is not found is dropped
            rows = rows.withColumn(IS_DELETE, has_action(RowAction.DELETE))
        tagged = tag_rows(self.table, rows, self.cached, self.records)
        if conditional:
            tagged = TaggedRows(_executable(tagged.rows))
        return TaggedBatch(
            tagged.rows,
            count_rows(tagged.rows)[0] if tagged.counts is None else tagged.counts,
            by_key=self.records is not None and self.table.job.duplicate_policy is DuplicatePolicy.NONE,
            index_locations=tagged.index_locations,
            adaptive=tagged.adaptive,
            inconsistencies=tagged.inconsistencies,
            changes=None if checked is None else checked.changes,
        )

    @property
    def _finds_only_records(self) -> bool:
        """True if the keys that are found are those of records: a record index may have others, and so may base files
        with deletes in their logs."""
        logged = self.table.logged
        return self.records is None and not (logged.new_keys or logged.deletes)

    def by_location(self, rows: DataFrame, changes: RowChanges) -> TaggedBatch:
        """Tag rows with the file groups from which they were read, and count them if necessary."""
        job = self.table.job
        if self._has_stale_positions(changes):
            rows = rows.drop(ROW_POSITION)
        groups = self._few_groups(changes)
        rows = rows if groups is not None or changes.origin is RowOrigin.CACHED else self.cached.add(rows)
        tagged = self._located(rows, changes)
        # the rows are then not joined with anything
        no_lookup = not _needs_lookup(job, changes)
        simple = no_lookup and (groups is None or changes.origin is not RowOrigin.QUERY)
        counted: ChangeCounts | None = None
        if groups is None:
            counts, counted = count_rows(tagged.rows, counts_changes=job.counts_changes, adaptive=not simple)
        else:
            counts = uncounted(groups)
        return TaggedBatch(
            tagged.rows,
            with_base_paths(counts, self.table.slices, changes.bases),
            # without positions only the file groups are known
            by_key=self.records is not None or changes.bases is None,
            is_counted=groups is None,
            adaptive=not simple,
            inconsistencies=tagged.inconsistencies,
            changes=counted,
        )

    def _has_stale_positions(self, changes: RowChanges) -> bool:
        """Return True if positions that are not needed refer to a base file that was compacted since it was read."""
        located = changes.locations
        if located is None or located.positions is not RowPositions.KNOWN:
            return False
        return not positions_are_current(located.groups, self.table.slices)

    def _few_groups(self, changes: RowChanges) -> pa.Table | None:
        """Return the file groups (`RowLocations.groups`) that a job may change, if its rows need not be counted: the
        groups are few, there are no new records to place, and no index of keys to update. Base files are rewritten
        row by row, so rows need positions; log files take them in any order."""
        table, located = self.table, changes.locations
        if located is None or changes.new_records is not NewRecords.NONE or table.clustering.num_rows:
            return None
        if not table.has_logs and not (changes.bases is not None and table.logged == LogContents()):
            return None
        few = located.groups.num_rows <= _GROUPS_PER_CORE * parallelism(table.job.df.sparkSession)
        return located.groups if few and without_key_indexes(self.metadata_partitions) else None

    def _located(self, rows: DataFrame, changes: RowChanges) -> TaggedRows:
        """Return changes of rows with their locations. New records are looked up unless their keys are known to be
        new."""
        job = self.table.job
        if not _needs_lookup(job, changes):
            return TaggedRows(located_changes(rows))
        # Plans that only filter rows of a cache are not adaptive. Spark would describe each of them twice in the
        # description of the next one, before and after its adaptation, which grows to megabytes.
        located = located_changes(rows.where(F.col(FILE_ID).isNotNull()))
        added = rows.where(F.col(FILE_ID).isNull()).drop(FILE_ID, ROW_POSITION)
        if _are_new(job, changes):
            added = self.cached.add(added, adaptive=False)
            untagged = BatchDeduplication(job.spec, job.merging, job.global_keys).untagged(added, self.cached.add)
            return TaggedRows(located.unionByName(untagged))
        tagged = tag_rows(self.table, added, self.cached, self.records, adaptive=False)
        return TaggedRows(located.unionByName(tagged.rows), inconsistencies=tagged.inconsistencies)


def _executable(tagged: DataFrame) -> DataFrame:
    """Return the tagged rows that do something, by their actions, with the marks of those that delete their records."""
    stored = F.col(FILE_ID).isNotNull()
    idle = F.when(stored, has_action(RowAction.INSERT)).otherwise(has_action(RowAction.UPDATE))
    return tagged.where(~idle).withColumn(IS_DELETE, stored & has_action(*DELETING))


def _needs_lookup(job: WriteJob, changes: RowChanges) -> bool:
    """Return True if new records have to be compared with each other or with the keys of the table."""
    if changes.new_records is NewRecords.NONE or job.operation is Operation.DELETE:
        return False
    distinct = job.spec.auto_keys or changes.new_records.have_distinct_keys or not job.combines
    return not (_are_new(job, changes) and distinct)


def _are_new(job: WriteJob, changes: RowChanges) -> bool:
    """Return True if the table does not have the keys of new records."""
    return changes.new_records.have_new_keys or job.spec.auto_keys
