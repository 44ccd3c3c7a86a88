"""Operation delete_partition: replaces all file groups of partitions, without changing files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyhudi.config import options
from pyhudi.errors import warn
from pyhudi.schema.meta_fields import PARTITION_PATH
from pyhudi.spark.indexes.record_index.record_index_update import KeyChanges, index_delta
from pyhudi.spark.keys.key_errors import key_errors
from pyhudi.spark.keys.key_generator import with_keys
from pyhudi.spark.write.plans.buckets.consistent_bucket_routing import check_not_consistent
from pyhudi.spark.write.write_commit import begin_write, commit_write
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.timeline.commit_metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.write.write_operations import groups_to_replace, match_partitions, type_name, unmatched_partitions
from pyhudi.write.write_result import WriteResult

_SHOWN = 5
"""Partitions that the warning about missing ones shows."""


def delete_partitions(job: WriteJob) -> WriteResult:
    """Drop the partitions of the job, or those in `hoodie.datasource.write.partitions.to.delete` (`*` matches any
    text), or, if neither is set, the partitions of the input's rows.

    Raises:
        UnsupportedTableError: The table has consistent hashing.
        ConflictError: A concurrent writer has committed a conflicting change.
    """
    patterns = None if job.partitions else job.opts.text(options.PARTITIONS_TO_DELETE)
    exact = [] if patterns else job.partitions or _partitions_of(job)

    def choose(_: TableSnapshot, view: FileSystemView) -> Sequence[str]:
        existing = view.partitions
        missing = unmatched_partitions(patterns, existing) if patterns else sorted(set(exact) - set(existing))
        if missing:
            warn(unknown_partitions_message(job.storage.uri(), missing, existing))
        return match_partitions(patterns, existing) if patterns else exact

    return delete_selected_partitions(job, choose)


def unknown_partitions_message(uri: str, missing: Sequence[str], existing: Sequence[str]) -> str:
    """Return the warning about partitions to delete that do not exist.

    Args:
        uri: The table.
        missing: Paths or patterns that no partition matches.
        existing: Paths of the partitions of the table.
    """
    shown = ", ".join(repr(path) for path in sorted(existing)[:_SHOWN])
    rest = f" and {len(existing) - _SHOWN:,} more" if len(existing) > _SHOWN else ""
    return (
        f"delete_partition: the table at {uri!r} has no partition {', '.join(map(repr, missing))}; it "
        f"has {shown or 'none'}{rest}"
    )


def delete_selected_partitions(
    job: WriteJob, choose: Callable[[TableSnapshot, FileSystemView], Sequence[str]]
) -> WriteResult:
    """Drop the partitions that ``choose`` selects from the table as of the start of the write: later writes
    to one of them conflict with it.

    Raises:
        UnsupportedTableError: The table has consistent hashing.
        ConflictError: A concurrent writer has committed a conflicting change.
    """
    assert job.client is not None
    check_not_consistent(job.storage, job.operation.value)
    with begin_write(job) as tx:
        tx.to_inflight(CommitMetadata(type_name(job.operation)))
        table = TableSnapshot(job.storage, job.config, tx.active)
        view = job.view(tx.active)
        partitions = choose(table, view)
        slices = view.latest_slices()
        replaced = groups_to_replace(slices, partitions)
        stats = WRITE_STAT_SCHEMA.empty_table()
        index = index_delta(job.df.sparkSession, tx, tx.opts, KeyChanges(stats, slices, replaced))
        return commit_write(job, tx, job.metadata(stats, replaced), index)


def _partitions_of(job: WriteJob) -> list[str]:
    """Return the partition paths of the input's rows. Runs a Spark job."""
    with key_errors(job.df, job.spec):
        rows = with_keys(job.df, job.spec, "").select(PARTITION_PATH).distinct().collect()
    return [row[PARTITION_PATH] for row in rows]
