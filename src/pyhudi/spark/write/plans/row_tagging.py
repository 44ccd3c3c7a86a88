"""Tagging of the rows of a write with the file groups that their keys are in."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.enums import DuplicatePolicy, Operation
from pyhudi.keygen import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.execution.cached_frames import CachedFrames
from pyhudi.spark.indexes.record_index.record_index_handle import RecordIndex
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.lookup.tagging import KeyLookup, Tagged, tag, untagged_batch
from pyhudi.spark.write.write_input import as_in_table
from pyhudi.spark.write.write_job import WriteJob
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.write.location_columns import FILE_ID
from pyhudi.write.planning.existing_files import LogContents

_STAY = {
    options.SIMPLE_UPDATE_PARTITION_PATH.key: False,
    options.BLOOM_UPDATE_PARTITION_PATH.key: False,
    options.RECORD_INDEX_UPDATE_PARTITION_PATH.key: False,
}


def tag_rows(
    job: WriteJob,
    rows: DataFrame,
    slices: pa.Table,
    small: pa.Table,
    cached: CachedFrames,
    logged: LogContents,
    records: RecordIndex | None,
) -> Tagged:
    """Merge keyed rows with the same key as the options say, and tag them with the file groups of keys that the table
    has.

    Args:
        job: The write.
        rows: Keyed rows.
        slices: The table's file slices (SLICE_SCHEMA).
        small: Base files that new records may go to (SMALL_FILES_SCHEMA).
        cached: Holds what is evaluated more than once.
        logged: Contents of logs that have to be read.
        records: The record index in which keys are looked up; None: in files, as those of possible duplicates are.
    """
    deletes = job.operation is Operation.DELETE
    combine = combines(job)
    policy = duplicate_policy(job)
    if job.operation is Operation.INSERT and not job.opts.get_typed(options.MERGE_ALLOW_DUPLICATE_ON_INSERTS):
        if policy is DuplicatePolicy.NONE:
            # keys are looked for only in the files that the new records may go to
            slices = slices.filter(in_groups(slices, small))
    elif not job.operation.changes_records and policy is DuplicatePolicy.NONE:
        slices = slices.slice(0, 0)
    if job.client is None or not slices.num_rows:
        return Tagged(
            untagged_batch(
                *(cached.add(rows), job.spec, job.merging, cached.add),
                combine=combine,
                global_keys=job.global_keys,
                hard_deletes=deletes,
            )
        )
    # a record that is not to be inserted again does not move to another partition either
    opts = job.opts if policy is DuplicatePolicy.NONE else job.opts.merged(_STAY)
    stays = not job.global_keys and policy is DuplicatePolicy.NONE
    has_log_deletes = stays and logged.deletes
    # the index may still have keys of deleted records, which are no duplicates
    index = records if policy is DuplicatePolicy.NONE else None
    lookup = KeyLookup(
        *(job.client, job.spec, job.merging, opts, logged.new_keys, stays, has_log_deletes, index),
        stored_keys=job.stored_keys,
    )
    if job.global_keys:
        # ordering values are compared with stored ones, which may not fit into the types that rows come with
        rows = as_in_table(rows, job.merging.ordering_fields, job.schema)
    found = tag(cached.add(rows), slices, lookup, combine=combine, hard_deletes=deletes, persist=cached.add)
    if policy is DuplicatePolicy.DROP:
        return Tagged(found.rows.where(F.col(FILE_ID).isNull()))
    return found


def record_index_of(job: WriteJob) -> RecordIndex | None:
    """The record index whose keys the write looks up; None: there is none, or it looks none up."""
    kind = job.opts.get_typed(options.INDEX_TYPE)
    looks_up = job.operation.changes_records or duplicate_policy(job) is not DuplicatePolicy.NONE
    if job.client is None or not kind.is_record_index or not looks_up:
        return None
    return RecordIndex.open(job.client, partitioned=not kind.is_global)


def keys_only(rows: DataFrame, spec: KeySpec) -> DataFrame:
    """Select the key, and the columns that it is made of, of records to be deleted."""
    tops = dict.fromkeys(top_column(name, rows.columns) for name in spec.record_fields)
    return rows.select(*(quoted([name]) for name in tops), RECORD_KEY, PARTITION_PATH)


def combines(job: WriteJob) -> bool:
    """Return whether rows of one key are merged before they are written; rows that have their locations never are."""
    option = {
        Operation.UPSERT: options.COMBINE_BEFORE_UPSERT,
        Operation.DELETE: options.COMBINE_BEFORE_DELETE,
    }.get(job.operation, options.COMBINE_BEFORE_INSERT)
    return job.opts.get_typed(option) or duplicate_policy(job) is DuplicatePolicy.DROP


def duplicate_policy(job: WriteJob) -> DuplicatePolicy:
    """Return the handling of records of an insert whose keys the table has."""
    if job.operation is not Operation.INSERT:
        return DuplicatePolicy.NONE
    if job.opts.get_typed(options.INSERT_DROP_DUPLICATES):
        return DuplicatePolicy.DROP
    return job.opts.get_typed(options.INSERT_DUP_POLICY)
