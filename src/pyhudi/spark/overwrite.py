"""The save mode overwrite: a new table in place of an old one.

The original deletes the old table and then writes the new one, so that a write that fails leaves nothing. Here the new
files are written first, beside the old ones and invisible, under a replacecommit on the old table's timeline:

- where old and new table have the same timeline layout, that replacecommit is completed. From that moment on readers
  see the new rows and nothing else. Then the old table is cleared away behind it: data files, older instants, history,
  and the properties are exchanged for the new ones. A kill in between leaves a right table that is not tidy.
- where the layouts differ (a table of version 6 becomes one of version 8 or later, or the other way round), no single
  step can do it: the old table's metadata is deleted, and the new table with its one commit is put in its place.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.values import Operation
from pyhudi.format.filenames import split_paths
from pyhudi.spark.failures import spark_errors
from pyhudi.spark.group_plan import plan_groups
from pyhudi.spark.write_bulk import write_new_files
from pyhudi.spark.write_groups import write_planned
from pyhudi.spark.write_job import WriteJob, touched_partitions
from pyhudi.storage import Storage
from pyhudi.table.fsview import FileSystemView
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.table.partition_metadata import FILE_NAME as PARTITION_METADATA
from pyhudi.table.properties_file import PATH, update_properties
from pyhudi.timeline.gate import WriteGate
from pyhudi.timeline.generator import InstantGenerator
from pyhudi.timeline.instants import Action
from pyhudi.timeline.metadata import CommitMetadata
from pyhudi.transaction.outcome import Conflicted
from pyhudi.transaction.reconcile import reconcile
from pyhudi.transaction.transaction import Transaction
from pyhudi.write.operations import replaced_groups, type_name
from pyhudi.write.result import WriteResult

META_FOLDER = ".hoodie"
_LEFTOVERS = (".hoodie/.schema", ".hoodie/.index_defs", ".hoodie/.bucket_index")
"""Folders that describe the old table and say nothing of the new one."""


def overwrite_table(old: TableMetaClient, job: WriteJob) -> WriteResult:
    """Write a job's rows as a new table in place of the table ``old``. The job has no client: to it, there is no table.

    A failure while the rows are written leaves the old table as it was.
    """
    plan = None
    try:
        if job.operation is not Operation.BULK_INSERT and not job.spec.auto_keys:
            with spark_errors(job):
                plan = plan_groups(job, None)
        with Transaction.begin(old, Action.REPLACE_COMMIT, type_name(job.operation), job.opts) as tx, spark_errors(job):
            if job.operation is Operation.BULK_INSERT:
                tx.to_inflight(None)
                stats = write_new_files(job, tx.instant)
            else:
                plan = plan or plan_groups(job, None, tx.instant)
                tx.to_inflight(CommitMetadata(type_name(job.operation)))
                stats = write_planned(job, plan, tx.instant)
            return _exchange(old, job, tx, stats)
    finally:
        if plan is not None:
            plan.rows.unpersist()


def _exchange(old: TableMetaClient, job: WriteJob, tx: Transaction, stats: pa.Table) -> WriteResult:
    if old.config.layout != job.config.layout:
        return _start_over(old, job, tx, stats)
    view = FileSystemView.load(old, tx.timeline)
    metadata = job.metadata(stats, replaced_groups(view.latest_slices(), None))
    outcome = tx.commit(metadata)
    if isinstance(outcome, Conflicted):
        raise outcome.error()
    done = outcome.instant
    _clear_data(job.storage, stats)
    _clear_instants(old, except_for=done.requested)
    for folder in (old.config.layout.history, *_LEFTOVERS):
        job.storage.delete_tree(folder)
    job.storage.make_dirs(job.config.layout.history)
    wanted = job.config.properties
    update_properties(job.storage, put=wanted, remove=set(old.config.properties) - set(wanted))
    return WriteResult(
        job.storage.uri(), type_name(job.operation), done.requested, done.completion, True, stats, metadata.replaced
    )


def _start_over(old: TableMetaClient, job: WriteJob, tx: Transaction, stats: pa.Table) -> WriteResult:
    """Put a table of another timeline layout in place of the old one."""
    requested = tx.instant
    WriteGate(job.storage, requested).close()
    reconcile(job.storage, requested, stats, old.config.version)
    _clear_instants(old, except_for=requested)
    _clear_data(job.storage, stats)
    # without its properties the old table is none any more, so nobody takes what is left of it for one
    job.storage.delete(PATH)
    job.storage.delete_tree(".hoodie")
    tx.abort()  # finds nothing to roll back; ends heartbeat and markers
    client = TableMetaClient.create(job.storage, job.config, job.opts)
    active = client.active_timeline()
    metadata = job.metadata(stats)
    entry = active.create_requested(job.action, requested)
    entry = active.to_inflight(entry)
    generator = InstantGenerator(job.storage, job.opts, job.config.timezone)
    completion = generator.next() if active.layout.version >= 2 else None
    done = active.complete(entry, metadata.encode(job.config.version, job.action), completion)
    return WriteResult(job.storage.uri(), type_name(job.operation), done.requested, done.completion, True, stats)


def _clear_data(storage: Storage, stats: pa.Table) -> None:
    """Delete every file outside of ``.hoodie``, except what the write made and the metadata of its partitions."""
    folders = pa.array(touched_partitions(stats), pa.string())
    written = stats["path"].combine_chunks()
    top = [name for name in storage.list_dirs() if name != META_FOLDER]
    listings = [storage.list(), *(storage.list(name, recursive=True) for name in top)]
    for listing in listings:
        parents, names = split_paths(listing["path"])
        marks = pc.and_(pc.starts_with(names, PARTITION_METADATA), pc.is_in(parents, value_set=folders))
        keep = pc.or_(marks, pc.is_in(listing["path"].combine_chunks(), value_set=written))
        storage.delete_many(listing["path"].filter(pc.invert(keep)).to_pylist())
    live = {path.split("/")[0] for path in folders.to_pylist()}
    for name in top:
        if name not in live:
            storage.delete_tree(name)


def _clear_instants(old: TableMetaClient, except_for: str) -> None:
    """Delete all instants but one. What is left after a kill is a completed instant, never one that looks failed."""
    active = old.active_timeline()
    for instant in active.timeline:
        if instant.requested != except_for:
            for state in reversed(active.states(instant)):
                active.delete(state)
