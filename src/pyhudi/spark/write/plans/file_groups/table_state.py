"""State of a table on which the plan of a write is based."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, MergeMode, Operation, TableType
from pyhudi.errors import NonRetryableConflictError
from pyhudi.spark.write.dml_commit import NewRecords
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import GROUP_INSTANT_SCHEMA
from pyhudi.table.view.file_slicing import SLICE_SCHEMA, has_log_files
from pyhudi.table.view.pending_file_groups import pending_clustering_groups, pending_compaction_groups
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.transaction.conflicts.clustering_updates import allows_updates
from pyhudi.transaction.conflicts.timeline_snapshot import TimelineSnapshot
from pyhudi.write.planning.log_file_summary import LogContents
from pyhudi.write.planning.record_size import average_record_size, write_history
from pyhudi.write.planning.small_files import SMALL_FILES_SCHEMA, InsertPlacement, find_small_files
from pyhudi.write.planning.workload_profile import WorkloadProfile, build_workload_profile
from pyhudi.write.settings.log_settings import LOG_SLICES_SCHEMA, log_slices
from pyhudi.write.settings.write_settings import sizing
from pyhudi.write.write_checks import check_log_free

_FILLS = frozenset({Operation.UPSERT, Operation.INSERT})


@dataclass(frozen=True, slots=True)
class TableState:
    """File slices and pending services of a table at one time, and sizes of its files.

    Attributes:
        job: The write that is planned.
        snapshot: The instants that determine this state.
        slices: The latest file slices (SLICE_SCHEMA).
        clustering: File groups with a pending clustering (GROUP_INSTANT_SCHEMA).
        compaction: File groups with a pending compaction (GROUP_INSTANT_SCHEMA).
        logged: Contents of logs that a lookup of keys has to read.
        placement: Placement of new records.
    """

    job: WriteJob
    snapshot: TimelineSnapshot
    slices: pa.Table
    clustering: pa.Table
    compaction: pa.Table
    logged: LogContents
    placement: InsertPlacement

    @classmethod
    def load(cls, job: WriteJob, active: ActiveTimeline | None) -> TableState:
        """Return the state at a timeline; None: there is no table yet."""
        slices, logged = SLICE_SCHEMA.empty_table(), LogContents()
        clustering = compaction = GROUP_INSTANT_SCHEMA.empty_table()
        if active is not None:
            slices = job.slices(active)
            clustering, compaction = pending_clustering_groups(active), pending_compaction_groups(active)
            logged = _log_contents(job, active, slices)
        files = sizing(job.opts, job.config.base_file_format)
        small = _files_to_fill(job, slices, pa.concat_tables([clustering, compaction]), files.small_file_limit)
        snapshot = TimelineSnapshot.from_timeline(None if active is None else active.timeline)
        size = average_record_size(() if active is None else write_history(active), files)
        placement = InsertPlacement(small, files, size, job.opts.get_typed(options.FILL_RATIO))
        return cls(job, snapshot, slices, clustering, compaction, logged, placement)

    @property
    def has_logs(self) -> bool:
        """True if updates and deletes are written to log files."""
        return self.job.config.table_type is TableType.MERGE_ON_READ

    def workload(self, counts: pa.Table, *, is_counted: bool) -> WorkloadProfile:
        """Plan the file groups of tagged rows.

        Args:
            counts: The rows by file group (COUNTS_SCHEMA).
            is_counted: The numbers are known. Otherwise base files tell how much work a group may be, even if its rows
                go to log files.

        Raises:
            NonRetryableConflictError: A file group to be changed has a pending clustering.
            UnsupportedTableError: A file group of a copy-on-write table has log files.
        """
        profile = build_workload_profile(counts, self.slices, self.placement, logs=self.has_logs and is_counted)
        self._check(profile)
        return profile

    def log_slices(self, groups: pa.Table) -> pa.Table:
        """Return the slices (LOG_SLICES_SCHEMA) of file groups (partition, file_id) to which log files are appended."""
        if not self.has_logs:
            return LOG_SLICES_SCHEMA.empty_table()
        config = self.job.config
        return log_slices(
            groups,
            self.slices,
            self.compaction,
            named_by_slice=config.version < 8,
            with_names=config.cdc_enabled,
        )

    def _check(self, workload: WorkloadProfile) -> None:
        touched = workload.groups.filter(pc.is_valid(workload.groups["base_path"]))
        if not self.has_logs:
            check_log_free(pc.sum(in_groups(touched, self.slices.filter(has_log_files(self.slices)))).as_py() or 0)
        if allows_updates(self.job.opts):
            return
        waiting = touched.filter(in_groups(touched, self.clustering))
        if waiting.num_rows:
            first = self.clustering.filter(in_groups(self.clustering, waiting)).slice(0, 1).to_pylist()[0]
            raise NonRetryableConflictError(
                f"{waiting.num_rows} file groups to be changed wait for a clustering that is planned (first: "
                f"{first['file_id']!r} in partition {first['partition']!r}); run the clustering "
                f"(services.run_clustering({first['instant']!r})), or roll its plan back "
                f"(services.rollback({first['instant']!r}), once more if it has been started)"
            )


def _files_to_fill(job: WriteJob, slices: pa.Table, busy: pa.Table, limit: int) -> pa.Table:
    """Return the small base files to which new records are written (SMALL_FILES_SCHEMA)."""
    # a record with some of its columns cannot be merged with others into a base file
    replaces_deleted = job.changes is not None and job.changes.new_records is NewRecords.REPLACING_DELETED
    if job.operation not in _FILLS or limit <= 0 or replaces_deleted or job.opts.is_set(options.PARTIAL_UPDATE_SCHEMA):
        return SMALL_FILES_SCHEMA.empty_table()
    has_logs = job.config.table_type is TableType.MERGE_ON_READ
    max_files = job.opts.get_typed(options.SMALL_FILE_GROUP_CANDIDATES) if has_logs else None
    return find_small_files(slices, busy, limit, max_files)


def _log_contents(job: WriteJob, active: ActiveTimeline, slices: pa.Table) -> LogContents:
    """Log contents that a lookup has to read: keys that base files do not hold, and the stored version of a record
    where that decides whether the incoming one moves to another partition or is a duplicate."""
    policy = job.duplicate_policy
    if not job.operation.changes_records and policy is DuplicatePolicy.NONE:
        return LogContents()
    logged = slices.filter(has_log_files(slices))
    if not logged.num_rows:
        return LogContents()
    if job.global_keys or policy is not DuplicatePolicy.NONE:
        return LogContents(new_keys=True)
    contents = LogContents.load(active, logged)
    # a merger of the user's may delete what no write has deleted
    return replace(contents, deletes=contents.deletes or job.merging.mode is MergeMode.CUSTOM)
