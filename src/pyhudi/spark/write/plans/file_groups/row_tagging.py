"""Tagging of the rows of a write with the file groups that contain their keys."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.index.record_index import RecordIndex
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.lookup.key_lookup import KeyLookup
from pyhudi.spark.lookup.partition_updates.global_tagging import merges_moved_records
from pyhudi.spark.lookup.tagging import BatchDeduplication, TaggedRows, tag, untagged
from pyhudi.spark.write.plans.file_groups.table_state import TableState
from pyhudi.spark.write.write_input import as_in_table, whole_rows
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.write.location_columns import FILE_ID
from pyhudi.write.planning.log_file_summary import LogContents

_STAY = {
    options.SIMPLE_UPDATE_PARTITION_PATH.key: False,
    options.BLOOM_UPDATE_PARTITION_PATH.key: False,
    options.RECORD_INDEX_UPDATE_PARTITION_PATH.key: False,
}


def tag_rows(
    table: TableState, rows: DataFrame, cached: CachedFrames, records: RecordIndex | None, *, adaptive: bool = True
) -> TaggedRows:
    """Merge keyed rows with the same key as the options require, and tag them with the file groups of their records.

    Args:
        table: State of the table.
        rows: Keyed rows.
        cached: Persists DataFrames that are evaluated more than once.
        records: The record index in which keys are looked up; None: in files, as those of possible duplicates are.
        adaptive: The plan of the rows may improve while it is executed.

    Returns:
        The tagged rows.
    """
    job, slices = table.job, _searched_slices(table)
    if job.client is None or not slices.num_rows:
        return TaggedRows(_without_lookup(job, cached.add(rows, adaptive=adaptive), cached))
    lookup = _key_lookup(job, job.client, table.logged, records)
    if job.global_keys:
        # Ordering values are compared with stored ones, which may exceed the types of the rows.
        rows = as_in_table(rows, job.merging.ordering_fields, job.schema)
        if not lookup.hard_deletes and merges_moved_records(lookup):
            rows = whole_rows(rows, job.schema)
    rows = cached.add(rows, adaptive=adaptive)
    tagged = tag(rows, slices, lookup, combine=job.combines, persist=cached.add)
    if job.duplicate_policy is DuplicatePolicy.DROP:
        return TaggedRows(tagged.rows.where(F.col(FILE_ID).isNull()))
    return tagged


def _searched_slices(table: TableState) -> pa.Table:
    """Return the file slices in which the keys of the rows are looked up."""
    job, slices = table.job, table.slices
    if job.operation.changes_records or job.duplicate_policy is not DuplicatePolicy.NONE:
        return slices
    if job.operation is Operation.INSERT:
        if job.opts.get_typed(options.MERGE_ALLOW_DUPLICATE_ON_INSERTS):
            return slices.slice(0, 0)
        # Those that new records may go to.
        return slices.filter(in_groups(slices, table.placement.small_files))
    return slices.slice(0, 0)


def _without_lookup(job: WriteJob, rows: DataFrame, cached: CachedFrames) -> DataFrame:
    """Return rows of which the table has none, merged by key if the write combines them."""
    if not job.combines:
        return untagged(rows)
    deletes = job.operation is Operation.DELETE
    return BatchDeduplication(job.spec, job.merging, job.global_keys, deletes).untagged(rows, cached.add)


def _key_lookup(job: WriteJob, client: TableMetaClient, logged: LogContents, records: RecordIndex | None) -> KeyLookup:
    """Return the lookup of the keys of a write.

    A record that is not to be inserted again does not move to another partition either. The record index may still
    have keys of deleted records, which are no duplicates, so these are looked up in files.
    """
    finds_duplicates = job.duplicate_policy is not DuplicatePolicy.NONE
    keeps_partition = not job.global_keys and not finds_duplicates
    return KeyLookup(
        client,
        job.spec,
        job.merging,
        job.opts.merged(_STAY) if finds_duplicates else job.opts,
        merge_logs=logged.new_keys,
        include_deleted=keeps_partition,
        has_log_deletes=keeps_partition and logged.deletes,
        records=None if finds_duplicates else records,
        stored_keys=job.keys.stored,
        hard_deletes=job.operation is Operation.DELETE,
    )


def record_index_of(job: WriteJob) -> RecordIndex | None:
    """Return the record index in which the write looks up keys; None if there is no record index or no lookup."""
    kind = job.opts.get_typed(options.INDEX_TYPE)
    looks_up = job.operation.changes_records or job.duplicate_policy is not DuplicatePolicy.NONE
    if job.client is None or not kind.is_record_index or not looks_up:
        return None
    return RecordIndex.open(job.client, partitioned=not kind.is_global)
