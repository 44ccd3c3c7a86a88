"""delete_partition: takes all file groups of partitions out of view, without touching a file."""

from __future__ import annotations

from pyhudi.config import options
from pyhudi.schema.columns import PARTITION_PATH
from pyhudi.spark.consistent import check_not_consistent
from pyhudi.spark.failures import spark_errors
from pyhudi.spark.keygen import with_keys
from pyhudi.spark.recorddelta import KeyChanges
from pyhudi.spark.write_job import WriteJob
from pyhudi.table.fsview import FileSystemView
from pyhudi.timeline.metadata import WRITE_STAT_SCHEMA, CommitMetadata
from pyhudi.write.operations import match_partitions, replaced_groups, type_name
from pyhudi.write.result import WriteResult


def delete_partitions(job: WriteJob) -> WriteResult:
    """Drop the partitions that `hoodie.datasource.write.partitions.to.delete` names (`*` stands for any text), or,
    when it names none, those of the input's rows.

    Raises:
        UnsupportedTableError: the table has consistent hashing.
        ConflictError: another writer was faster.
    """
    assert job.client is not None
    check_not_consistent(job.storage, job.operation.value)
    wanted = job.opts.text(options.PARTITIONS_TO_DELETE)
    exact = [] if wanted else _partitions_of(job)
    with job.transaction() as tx:
        tx.to_inflight(CommitMetadata(type_name(job.operation)))
        view = FileSystemView.load(job.client, tx.timeline)
        partitions = match_partitions(wanted, view.partitions) if wanted else exact
        slices = view.latest_slices()
        replaced = replaced_groups(slices, partitions)
        stats = WRITE_STAT_SCHEMA.empty_table()
        index = job.index_delta(tx, KeyChanges(stats, slices, replaced))
        return job.commit(tx, job.metadata(stats, replaced), index)


def _partitions_of(job: WriteJob) -> list[str]:
    """The partition paths of the input's rows. Runs a Spark job."""
    with spark_errors(job):
        rows = with_keys(job.df, job.spec, "").select(PARTITION_PATH).distinct().collect()
    return [row[PARTITION_PATH] for row in rows]
