"""Tagging of the rows of a write with the file groups that contain their keys."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.indexes.record_index.record_index import RecordIndex
from pyhudi.spark.lookup.global_tagging import merges_moved_records
from pyhudi.spark.lookup.tagging import BatchDeduplication, KeyLookup, Tagged, tag, untagged
from pyhudi.spark.write.plans.file_groups.table_state import TableState
from pyhudi.spark.write.write_input import as_in_table, whole_rows
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.write.location_columns import FILE_ID

_STAY = {
    options.SIMPLE_UPDATE_PARTITION_PATH.key: False,
    options.BLOOM_UPDATE_PARTITION_PATH.key: False,
    options.RECORD_INDEX_UPDATE_PARTITION_PATH.key: False,
}


def tag_rows(table: TableState, rows: DataFrame, cached: CachedFrames, records: RecordIndex | None) -> Tagged:
    """Merge keyed rows with the same key as the options require, and tag them with the file groups of their records.

    Args:
        table: State of the table.
        rows: Keyed rows.
        cached: Persists DataFrames that are evaluated more than once.
        records: The record index in which keys are looked up; None: in files, as those of possible duplicates are.

    Returns:
        The tagged rows.
    """
    job, slices, logged = table.job, table.slices, table.logged
    deletes = job.operation is Operation.DELETE
    combine = job.combines
    policy = job.duplicate_policy
    if job.operation is Operation.INSERT and not job.opts.get_typed(options.MERGE_ALLOW_DUPLICATE_ON_INSERTS):
        if policy is DuplicatePolicy.NONE:
            # Keys are looked up only in the files that new records may go to.
            slices = slices.filter(in_groups(slices, table.placement.small_files))
    elif not job.operation.changes_records and policy is DuplicatePolicy.NONE:
        slices = slices.slice(0, 0)
    if job.client is None or not slices.num_rows:
        rows = cached.add(rows)
        deduplication = BatchDeduplication(job.spec, job.merging, job.global_keys, deletes)
        return Tagged(deduplication.untagged(rows, cached.add) if combine else untagged(rows))
    # A record that is not to be inserted again does not move to another partition either.
    opts = job.opts if policy is DuplicatePolicy.NONE else job.opts.merged(_STAY)
    keeps_partition = not job.global_keys and policy is DuplicatePolicy.NONE
    has_log_deletes = keeps_partition and logged.deletes
    # The index may still have keys of deleted records, which are no duplicates.
    index = records if policy is DuplicatePolicy.NONE else None
    lookup = KeyLookup(
        job.client,
        job.spec,
        job.merging,
        opts,
        merge_logs=logged.new_keys,
        include_deleted=keeps_partition,
        has_log_deletes=has_log_deletes,
        records=index,
        stored_keys=job.keys.stored,
    )
    if job.global_keys:
        # Ordering values are compared with stored ones, which may exceed the types of the rows.
        rows = as_in_table(rows, job.merging.ordering_fields, job.schema)
        if not deletes and merges_moved_records(lookup):
            rows = whole_rows(rows, job.schema)
    tagged = tag(cached.add(rows), slices, lookup, combine=combine, hard_deletes=deletes, persist=cached.add)
    if policy is DuplicatePolicy.DROP:
        return Tagged(tagged.rows.where(F.col(FILE_ID).isNull()))
    return tagged


def record_index_of(job: WriteJob) -> RecordIndex | None:
    """Return the record index in which the write looks up keys; None if there is no record index or no lookup."""
    kind = job.opts.get_typed(options.INDEX_TYPE)
    looks_up = job.operation.changes_records or job.duplicate_policy is not DuplicatePolicy.NONE
    if job.client is None or not kind.is_record_index or not looks_up:
        return None
    return RecordIndex.open(job.client, partitioned=not kind.is_global)
