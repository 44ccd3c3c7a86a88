"""Workload of an upsert or insert: all file groups to write, and their numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import file_names_of
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.timeline.commit_metadata import write_stats
from pyhudi.write.planning.small_files import INSERT_TARGETS_SCHEMA, INSERTS_SCHEMA, InsertPlacement

COUNTS_SCHEMA = pa.schema(
    [("partition", pa.string()), ("file_id", pa.string()), ("base_path", pa.string()), ("rows", pa.int64())]
)
"""Counts of tagged rows by destination: updates and deletes by file group, new records with null file id and path."""

GROUPS_SCHEMA = pa.schema([*INSERT_TARGETS_SCHEMA, ("size", pa.int64())])
"""File groups to write: partition, file id, current base file (null: new group), number of incoming rows, and bytes to
read and write."""


@dataclass(frozen=True, slots=True)
class WorkloadProfile:
    """File groups that a write changes.

    Attributes:
        updates: Groups with updates or deletes (COUNTS_SCHEMA).
        inserts: New records by partition (INSERTS_SCHEMA).
        insert_targets: Groups with new records (INSERT_TARGETS_SCHEMA), which may have updates as well.
        groups: All groups, each once (GROUPS_SCHEMA).
    """

    updates: pa.Table
    inserts: pa.Table
    insert_targets: pa.Table
    groups: pa.Table


def build_workload_profile(
    counts: pa.Table,
    base_sizes: pa.Table,
    placement: InsertPlacement,
    *,
    logs: bool = False,
) -> WorkloadProfile:
    """Plan a write from the counts of its rows.

    Args:
        counts: Number of rows by file group (COUNTS_SCHEMA).
        base_sizes: Columns partition, file_id and base_size of existing file groups.
        placement: Placement of new records.
        logs: Updates are written to log files, so base files without new records are not rewritten.

    Returns:
        The file groups to be written.
    """
    is_new = pc.is_null(counts["file_id"])
    new = counts.filter(is_new)
    inserts = pa.table([new["partition"], new["rows"]], schema=INSERTS_SCHEMA).sort_by("partition").combine_chunks()
    updates = counts.filter(pc.invert(is_new)).combine_chunks()
    insert_targets = placement.assign(inserts, logs=logs)
    if logs:
        base_sizes = base_sizes.filter(in_groups(base_sizes, insert_targets))
    touched = pa.concat_tables([updates.cast(INSERT_TARGETS_SCHEMA), insert_targets])
    grouped = touched.group_by(["partition", "file_id"]).aggregate([("base_path", "max"), ("rows", "sum")])
    grouped = pa.table(
        [grouped["partition"], grouped["file_id"], grouped["base_path_max"], grouped["rows_sum"]],
        schema=INSERT_TARGETS_SCHEMA,
    )
    joined = grouped.join(
        base_sizes.select(["partition", "file_id", "base_size"]), ["partition", "file_id"], join_type="left outer"
    ).sort_by([("partition", "ascending"), ("file_id", "ascending")])
    size = pc.add(pc.fill_null(joined["base_size"], 0), pc.multiply(joined["rows"], placement.record_size))
    groups = joined.select(INSERT_TARGETS_SCHEMA.names).append_column("size", size).cast(GROUPS_SCHEMA).combine_chunks()
    return WorkloadProfile(updates, inserts, insert_targets, groups)


def profile_stats(workload: WorkloadProfile) -> pa.Table:
    """Return the workload in the form of the inflight file, as in Apache Hudi: a row for a partition's new records,
    then one for each file group with updates."""
    updates, inserts = workload.updates, workload.inserts
    partitions = pa.array(sorted({*updates["partition"].to_pylist(), *inserts["partition"].to_pylist()}), pa.string())
    at = pc.index_in(partitions, inserts["partition"].combine_chunks())
    new_rows = pc.fill_null(inserts["rows"].combine_chunks().take(at), 0)
    heads = pa.table({"partitionPath": partitions, "fileId": pa.repeat("", len(partitions)), "numInserts": new_rows})
    names = file_names_of(updates["base_path"])
    previous = pc.struct_field(pc.extract_regex(names, r"_(?P<instant>\d+)\.[a-z]+$"), "instant")
    groups = pa.table(
        {
            "partitionPath": updates["partition"],
            "fileId": updates["file_id"],
            "prevCommit": previous,
            "numUpdateWrites": updates["rows"],
        }
    )
    stats = pa.concat_tables([write_stats(heads), write_stats(groups)])
    order = np.argsort(pc.index_in(stats["partitionPath"], partitions).to_numpy(), kind="stable")
    return stats.take(pa.array(order))
