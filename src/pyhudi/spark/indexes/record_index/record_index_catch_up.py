"""Update of a record index that is built while a write runs.

The index cannot be read yet. Therefore the file slices before and after the write are compared, and the index gets all
keys of the file groups that the write has changed.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from pyhudi.errors import UnsupportedTableError
from pyhudi.merge.file_slice import SliceContext
from pyhudi.merge.logs.valid_log_blocks import CommittedInstants
from pyhudi.metadata.indexes.index_delta import IndexDelta
from pyhudi.metadata.indexes.record_index_definition import has_partitioned_record_index
from pyhudi.metadata.metadata_layout import RECORD_INDEX
from pyhudi.metadata.records.record_index_file_groups import RecordIndexFileGroups
from pyhudi.read.execution.file_slice_reader import column_names, slice_context
from pyhudi.read.schema.table_columns import schema_after
from pyhudi.spark.indexes.indexed_commit import IndexedCommit
from pyhudi.spark.indexes.key_ranges import task_count
from pyhudi.spark.indexes.record_index.record_index_keys import KeyRouting, removed_from, slice_keys
from pyhudi.spark.indexes.record_index.record_index_update import (
    create_missing_file_groups,
    file_groups_of,
    numbered_locations,
)
from pyhudi.spark.indexes.record_index.record_index_writer import KeyLocations, RecordIndexWrite, write_keys
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_listing import files_of_listing
from pyhudi.timeline.instant import millis_of_instant

_log = logging.getLogger(__name__)


def catch_up_delta(commit: IndexedCommit) -> IndexDelta | None:
    """Write the key changes of a commit to the record index that is being built. Runs a Spark job.

    Returns:
        The update; None if it cannot be determined, so that the index cannot be built.
    """
    config = commit.config
    if not config.populate_meta_fields:
        return None
    changes = commit.slice_changes()
    after, before = changes.after, changes.before
    if not changes:
        return IndexDelta(frozenset({RECORD_INDEX}))
    groups = _file_groups(commit, sorted(pc.unique(after["partition"]).to_pylist()))
    partitions = pc.unique(before["partition"])
    routing = KeyRouting(groups, task_count(len(groups), commit.spark))
    millis = millis_of_instant(commit.instant, commit.config.timezone)
    files = numbered_locations(after["partition"], after["file_id"], after["base_path"], millis)
    numbers = removed_from(pc.index_in(before["partition"], value_set=partitions))
    keys = _changed_keys(
        commit, after.append_column("number", files["number"]), before.append_column("number", numbers), routing
    )
    locations = KeyLocations(files, partitions)
    slices_of_index = file_groups_of(commit.storage, config, groups)
    target = RecordIndexWrite(
        commit.storage, commit.instant, config.version, groups, slices_of_index, fence=commit.fence
    )
    try:
        written = write_keys(keys, locations, target, routing.tasks)
    except UnsupportedTableError as reason:
        _log.warning("the record index of %s cannot be built: %s", commit.storage.root, reason)
        return None
    if written.duplicates:
        _log.warning("the record index of %s cannot be built: keys are in several file groups now", commit.storage.root)
        return None
    return IndexDelta(frozenset({RECORD_INDEX}), written.stats)


def _file_groups(commit: IndexedCommit, partitions: list[str]) -> RecordIndexFileGroups:
    """Return the file groups of the index, which are created for partitions that have none."""
    storage, config = commit.storage, commit.config
    partitioned = has_partitioned_record_index(storage, config)
    groups = RecordIndexFileGroups.from_ids(_file_group_ids(commit), partitioned=partitioned)
    return create_missing_file_groups(
        storage, config, commit.opts, instant=commit.instant, groups=groups, partitions=partitions
    )


def _file_group_ids(commit: IndexedCommit) -> list[str]:
    """Return the ids of the file groups of the index, except those that only other pending writes have opened for new
    partitions of the table: if one is rolled back, its file groups disappear."""
    pending = _pending_writes(commit)
    files = files_of_listing(commit.storage.list(f"{METADATA_FOLDER}/{RECORD_INDEX}"))
    pending |= _pending_writes(commit)  # one of the former may have been rolled back since
    counted = pc.invert(pc.is_in(files["instant"], value_set=pa.array(sorted(pending), pa.string())))
    return pc.unique(files["file_id"].filter(counted)).to_pylist()  # type: ignore[no-any-return]


def _pending_writes(commit: IndexedCommit) -> set[str]:
    pending = commit.client.active_timeline().timeline.pending().writes()
    return {write.requested for write in pending} - {commit.instant}


def _changed_keys(commit: IndexedCommit, after: pa.Table, before: pa.Table, routing: KeyRouting) -> DataFrame:
    """Return the keys of numbered file slices after the commit, and those before it with the numbers of their
    partitions."""
    table = TableSnapshot.load(commit.client)
    schema = schema_after(table, commit.metadata)
    context = slice_context(table, schema, names=column_names(table, schema), opts=commit.opts)
    keys = slice_keys(commit.spark, _with_own(context, commit.instant), after, routing)
    return keys.unionByName(slice_keys(commit.spark, context, before, routing)) if before.num_rows else keys


def _with_own(context: SliceContext, instant: str) -> SliceContext:
    """Return the context in which log blocks of this pending write are valid (tables of version 6)."""
    committed = context.view.committed
    if not isinstance(committed, CommittedInstants):
        return context
    completed, pending = committed.completed | {instant}, committed.pending - {instant}
    view = replace(context.view, committed=CommittedInstants(completed, pending, committed.start))
    return replace(context, view=view)
