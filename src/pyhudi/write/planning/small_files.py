"""Distribution of new records: the existing small files that receive them, and new files.

The rules are those of Apache Hudi: new records of a partition first fill its small base files up to the maximum file
size; the rest is written to new files, whose number of records is derived from the average record size. All
computations use one row per partition and file group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.file_names import new_file_id, new_file_prefix
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_slicing import has_log_files

Ints = npt.NDArray[np.int64]

_ALWAYS_FILLED = 4 * 1024 * 1024

INSERTS_SCHEMA = pa.schema([("partition", pa.string()), ("rows", pa.int64())])
"""New records by partition path; one row per partition."""

SMALL_FILES_SCHEMA = pa.schema(
    [("partition", pa.string()), ("file_id", pa.string()), ("base_path", pa.string()), ("size", pa.int64())]
)
"""Base files that may receive more records; sizes in bytes."""

INSERT_TARGETS_SCHEMA = pa.schema(
    [("partition", pa.string()), ("file_id", pa.string()), ("base_path", pa.string()), ("rows", pa.int64())]
)
"""Destinations of new records: existing small files (with ``base_path``) and new file groups, ordered within a
partition."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """File sizing options, in bytes and rows. ``split_size`` is used only if ``auto_split`` is false."""

    max_file_size: int
    small_file_limit: int
    split_size: int
    auto_split: bool
    default_record_size: int
    estimation_threshold: float

    def rows_per_new_file(self, record_size: int) -> int:
        """Return the planned number of records of a new file."""
        return max(self.max_file_size // max(record_size, 1), 1) if self.auto_split else max(self.split_size, 1)


@dataclass(frozen=True, slots=True)
class InsertPlacement:
    """Placement of new records in small files and new files.

    Attributes:
        small_files: Base files that may receive records (SMALL_FILES_SCHEMA).
        sizing: File sizing options.
        record_size: Average size of a record in a base file in bytes.
        fill_ratio: Selects the files to fill if updates are written to log files (`fillable_small_files`).
    """

    small_files: pa.Table
    sizing: Sizing
    record_size: int
    fill_ratio: int = 0

    def assign(self, inserts: pa.Table, *, logs: bool) -> pa.Table:
        """Assign new records (INSERTS_SCHEMA) to files (INSERT_TARGETS_SCHEMA).

        ``logs``: updates are written to log files.
        """
        small_files = self.small_files
        if logs:
            small_files = fillable_small_files(small_files, inserts, self.record_size, self.fill_ratio)
        return assign_inserts(inserts, small_files, self.sizing, self.record_size)

    def for_partition(self, partition: str) -> InsertPlacement:
        """Return the placement in one partition."""
        in_partition = pc.equal(self.small_files["partition"], partition)
        return replace(self, small_files=self.small_files.filter(in_partition).combine_chunks())


def assign_inserts(inserts: pa.Table, small_files: pa.Table, sizing: Sizing, record_size: int) -> pa.Table:
    """Assign new records to files.

    ``inserts`` has INSERTS_SCHEMA, ``small_files`` SMALL_FILES_SCHEMA (files of other partitions are ignored). Returns
    INSERT_TARGETS_SCHEMA, in the order of partitions in ``inserts``; each partition with new records has a row.
    """
    totals: Ints = inserts["rows"].to_numpy().astype(np.int64)
    partition_of = pc.index_in(small_files["partition"], inserts["partition"].combine_chunks())
    candidates = small_files.filter(pc.is_valid(partition_of))
    codes: Ints = pc.drop_null(partition_of).to_numpy(zero_copy_only=False).astype(np.int64)
    by_partition = np.argsort(codes, kind="stable")
    codes, candidates = codes[by_partition], candidates.take(pa.array(by_partition))

    room: Ints = np.maximum((sizing.max_file_size - candidates["size"].to_numpy()) // max(record_size, 1), 0)
    appended = _fill(codes, room, totals)
    remaining = totals - np.bincount(codes, weights=appended, minlength=len(totals)).astype(np.int64)

    per_file = sizing.rows_per_new_file(record_size)
    new_files: Ints = -(-remaining // per_file)
    new_codes = np.repeat(np.arange(len(totals)), new_files)
    new_rows = np.full(len(new_codes), per_file, dtype=np.int64)
    last = np.cumsum(new_files)[new_files > 0] - 1
    new_rows[last] = (remaining - (new_files - 1) * per_file)[new_files > 0]

    used = appended > 0
    old = candidates.filter(pa.array(used))
    order = np.argsort(np.concatenate((codes[used], new_codes)), kind="stable")
    names = inserts["partition"].combine_chunks()
    table = pa.table(
        [
            pa.chunked_array([*old["partition"].chunks, names.take(pa.array(new_codes))], pa.string()),
            pa.chunked_array([*old["file_id"].chunks, new_file_ids(len(new_codes))], pa.string()),
            pa.chunked_array([*old["base_path"].chunks, pa.nulls(len(new_codes), pa.string())], pa.string()),
            pa.chunked_array([pa.array(appended[used], pa.int64()), pa.array(new_rows, pa.int64())]),
        ],
        schema=INSERT_TARGETS_SCHEMA,
    )
    return table.take(pa.array(order)).combine_chunks()


def find_small_files(slices: pa.Table, busy: pa.Table, limit: int, max_files: int | None) -> pa.Table:
    """Return the base files that may receive more records (SMALL_FILES_SCHEMA): smaller than ``limit`` bytes, without
    log files, and in no plan of a table service.

    Args:
        slices: The latest file slices (SLICE_SCHEMA).
        busy: File groups that wait for a table service (partition, file_id).
        limit: Size of the smallest file that receives no records.
        max_files: The number of files of a partition that may receive records, the smallest ones; None: all of them.
    """
    fits = pc.and_kleene(pc.less(slices["base_size"], limit), pc.invert(has_log_files(slices)))
    fitting = slices.filter(fits).select(["partition", "file_id", "base_path", "base_size"])
    free = fitting.filter(pc.invert(in_groups(fitting, busy)))
    small = free.rename_columns(SMALL_FILES_SCHEMA.names).cast(SMALL_FILES_SCHEMA).sort_by("file_id")
    return small if max_files is None else smallest_files(small, max_files)


def smallest_files(small_files: pa.Table, max_files: int) -> pa.Table:
    """Return at most ``max_files`` files of each partition, the smallest ones (SMALL_FILES_SCHEMA)."""
    ordered = small_files.sort_by([("partition", "ascending"), ("size", "ascending"), ("file_id", "ascending")])
    partitions = ordered["partition"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.searchsorted(partitions, partitions, side="left")
    return ordered.filter(pa.array(np.arange(len(partitions)) - first < max_files))


def fillable_small_files(small_files: pa.Table, inserts: pa.Table, record_size: int, ratio: int) -> pa.Table:
    """Return the small files (SMALL_FILES_SCHEMA) whose size is at most ``ratio`` times that of the new records of
    their partition (INSERTS_SCHEMA), or negligible; 0: all of them.

    A file that receives records is rewritten. If updates are written to log files, this would dominate the cost of a
    write with few new records. Instead they go to a new file, which is then the smallest and is filled by later writes.
    """
    if not ratio:
        return small_files
    at = pc.index_in(small_files["partition"].combine_chunks(), inserts["partition"].combine_chunks())
    rows = pc.fill_null(inserts["rows"].combine_chunks().take(at), 0)
    max_sizes = pc.max_element_wise(pc.multiply(rows, record_size * ratio), _ALWAYS_FILLED)
    return small_files.filter(pc.less_equal(small_files["size"].combine_chunks(), max_sizes))


def new_file_ids(count: int) -> pa.Array:
    """Return ids of new file groups, each with a different prefix."""
    return pa.array([new_file_id(new_file_prefix(), 0) for _ in range(count)], pa.string())


def target_lookup_table(rows: Ints, resolution: int = 16) -> npt.NDArray[np.int32]:
    """Return a lookup table that distributes hashes over targets in proportion to their rows.

    Entry ``hash mod len`` is the index of the target. One target needs one entry; several get ``resolution`` entries
    each on average. Targets with very few rows may get none.
    """
    if len(rows) <= 1:
        return np.zeros(1, dtype=np.int32)
    size = len(rows) * resolution
    edges = np.cumsum(rows) / max(int(rows.sum()), 1)
    return np.minimum(np.searchsorted(edges, (np.arange(size) + 0.5) / size), len(rows) - 1).astype(np.int32)


def _fill(codes: Ints, room: Ints, totals: Ints) -> Ints:
    """Fill files in order: each takes the remaining rows of its partition, at most its capacity. ``codes`` ascend."""
    if not len(codes):
        return np.zeros(0, dtype=np.int64)
    running = np.cumsum(room)
    first = np.concatenate(([True], codes[1:] != codes[:-1]))
    base = np.repeat((running - room)[first], np.diff(np.append(np.flatnonzero(first), len(codes))))
    before = running - room - base
    filled: Ints = np.clip(totals[codes] - before, 0, room)
    return filled
