"""Upserts of rows routed by partition: a task itself looks up the keys of its partition.

Rows are shuffled once, without a lookup, join or count by file group before. One task has all rows of a partition and
reads all its keys, so this is efficient only for partitions of moderate size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import AmbiguousLocationError
from pyhudi.format.file_names import file_prefix_of, new_file_id
from pyhudi.merge.ordering_values import Mask
from pyhudi.merge.sorted_deduplication import SortedDeduplicator
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.table.view.file_group_keys import group_keys
from pyhudi.write.location_columns import PARTITION_SHARE
from pyhudi.write.planning.small_files import InsertPlacement
from pyhudi.write.planning.workload_profile import COUNTS_SCHEMA, WorkloadProfile, build_workload_profile
from pyhudi.write.row_action import ROW_ACTION, RowAction
from pyhudi.write.rows.incoming_rows import GroupKey, rows_by_columns
from pyhudi.write.rows.keyed_rows import KeyIndex, LocatedRows, base_keys, buffer_rows, upserts
from pyhudi.write.rows.spillable_row_buffer import Index, SpillableRowBuffer
from pyhudi.write.settings.write_context import TaskId, WriteContext
from pyhudi.write.tasks.write_tasks import GroupWriter
from pyhudi.write.write_status import encode_stats

BASES_SCHEMA = pa.schema(
    [("partition", pa.string()), ("file_id", pa.string()), ("base_path", pa.string()), ("base_size", pa.int64())]
)
"""Base files in which keys are looked up; sizes in bytes."""
TOO_MANY_ROWS = b""
"""Result of a task that has written nothing, because it has more rows than it may have."""


class _TooManyRowsError(Exception):
    """A task has more rows than it may have."""


@dataclass(frozen=True, slots=True)
class PartitionShare:
    """Part of the file groups of a partition that one of several tasks writes; all of them get all rows.

    One task writes all file groups that get new records, because the order of rows, which decides about their file
    groups, may differ between tasks. Rows have the text of their share in the column `PARTITION_SHARE`.
    """

    number: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> PartitionShare:
        """Return the share of a text."""
        number, _, count = text.partition("/")
        return cls(int(number), int(count))

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has(self, group: int, *, filled: bool) -> bool:
        """Return True if the share has a file group: the n-th of those without new records, or (``filled``) one with
        new records."""
        # start with the last share: the first one also has the file groups with new records
        return self.number == (0 if filled else self.count - 1 - group % self.count)


@dataclass(frozen=True, slots=True)
class InTaskTagging:
    """Settings of the key lookup inside a partition.

    Attributes:
        bases: Base files of the partitions that are written (BASES_SCHEMA).
        placement: Placement of new records.
        dedupe: Merges rows with the same key first; None: they are not merged.
        max_rows: Number of rows of the only partition above which a task writes nothing; None: it writes any number.
        conditional: Rows have actions (`ROW_ACTION`), of which some depend on whether the table has the key.
        log_deletes: Log files may delete keys of base files. The next version of such a key goes to the same file group
            unless the key is in another base file, too, where it may have been inserted again.
    """

    bases: pa.Table
    placement: InsertPlacement
    dedupe: SortedDeduplicator | None
    max_rows: int | None = None
    conditional: bool = False
    log_deletes: bool = False

    def for_partition(self, partition: str) -> InTaskTagging:
        """Return the settings for one partition."""
        bases = self.bases.filter(pc.equal(self.bases["partition"], partition)).combine_chunks()
        return InTaskTagging(bases, self.placement.for_partition(partition), self.dedupe)


def in_task_tagging_task(
    batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId, lookup: InTaskTagging
) -> bytes:
    """Write rows that are sorted by partition and share (`PARTITION_SHARE`), and have no locations.

    Memory: the buffer of *context* for a partition's rows, which are spilled beyond it; the keys of a partition's rows
    and of some base files at a time (`KeyIndex.match_each`).

    Returns:
        The write stats, encoded; `TOO_MANY_ROWS` if there are more than ``lookup.max_rows``.
    """
    writer = GroupWriter(context, task)
    try:
        limited = batches if lookup.max_rows is None else _limited(iter(batches), lookup.max_rows)
        for (partition, share), rows in rows_by_columns(limited, PARTITION_PATH, PARTITION_SHARE):
            with SpillableRowBuffer(context.buffer_size) as buffered:
                buffer_rows(rows, lookup.dedupe, buffered)
                parsed = PartitionShare.parse(share)
                for key, located, filled in _located(partition, buffered, context, lookup, parsed):
                    writer.write(key, located, append=not filled)
    except _TooManyRowsError:
        return TOO_MANY_ROWS
    return encode_stats(writer.stats)


def _limited(batches: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches; fail once they have more than ``max_rows`` rows, after the last of them."""
    count = 0
    for batch in batches:
        count += batch.num_rows
        if count > max_rows:
            deque(batches, maxlen=0)  # Spark does not use a worker again that has not read its input
            raise _TooManyRowsError
        yield batch


def _located(
    partition: str, buffered: SpillableRowBuffer, context: WriteContext, lookup: InTaskTagging, share: PartitionShare
) -> Iterator[tuple[GroupKey, LocatedRows, bool]]:
    """Yield the file groups of a share of a partition to write, with their rows, and whether new records are among
    them."""
    if not buffered.num_rows:
        return
    settings = lookup.for_partition(partition)
    keys = KeyIndex.from_keys(buffered.column(RECORD_KEY))
    new = upserts(buffered)
    actions = buffered.column(ROW_ACTION).to_numpy() if lookup.conditional else None
    if actions is not None:
        new |= actions == RowAction.DELETE_OR_INSERT
    paths = settings.bases["base_path"].to_pylist()
    matches = list(keys.match_each(base_keys(context.storage, path, context.invalid_text) for path in paths))
    if lookup.log_deletes:
        _check_locations(partition, matches, buffered.num_rows)
    for _, numbers in matches:
        new[numbers] = False
    if actions is not None:
        new &= actions != RowAction.UPDATE
        matches = [_changing(found, actions[found[1]] != RowAction.INSERT) for found in matches]
    fresh = np.flatnonzero(new).astype(np.int64)
    work = _workload(partition, settings, np.array([len(p) for p, _ in matches], dtype=np.int64), len(fresh), context)
    base_of = pc.index_in(group_keys(work.groups), value_set=group_keys(settings.bases)).to_pylist()
    bucket_of = pc.index_in(group_keys(work.groups), value_set=group_keys(work.insert_targets)).to_pylist()
    rows = work.insert_targets["rows"].to_numpy()
    ends = np.cumsum(rows)
    none: Index = np.zeros(0, dtype=np.int64)
    names = zip(work.groups["file_id"].to_pylist(), work.groups["base_path"].to_pylist(), strict=True)
    updated = 0
    for base, bucket, (file_id, path) in zip(base_of, bucket_of, names, strict=True):
        is_assigned = share.has(updated, filled=bucket is not None)
        updated += bucket is None  # ids and order of new file groups differ between tasks
        if not is_assigned:
            continue
        positions, numbers = (none, none) if base is None else matches[base]
        new_rows = none if bucket is None else fresh[ends[bucket] - rows[bucket] : ends[bucket]]
        opened = file_id if path else _opened(context.instant, partition, bucket)
        yield GroupKey(partition, opened, path), LocatedRows(buffered, positions, numbers, new_rows), bucket is not None


def _check_locations(partition: str, matches: Sequence[tuple[Index, Index]], num_rows: int) -> None:
    """Check that no row has its key in several base files.

    Raises:
        AmbiguousLocationError: A row has.
    """
    count = np.zeros(num_rows, dtype=np.int64)
    for _, numbers in matches:
        count[np.unique(numbers)] += 1
    if (count > 1).any():
        raise AmbiguousLocationError(
            f"keys are in several base files of partition {partition!r}, and log files may delete them in some of these"
        )


def _changing(matches: tuple[Index, Index], which: Mask) -> tuple[Index, Index]:
    """Return those pairs of a position and a row that are in a mask."""
    positions, numbers = matches
    return positions[which], numbers[which]


def _opened(instant: str, partition: str, number: int) -> str:
    """Return the id of a new file group, which is the same for every attempt of a task."""
    return new_file_id(file_prefix_of(f"{instant}/{partition}/{number}"), 0)


def _workload(
    partition: str, tagging: InTaskTagging, updates: Index, new: int, context: WriteContext
) -> WorkloadProfile:
    """Return the workload of one partition; ``updates`` are numbers of rows by base file."""
    some = pa.array(np.flatnonzero(updates))
    bases = tagging.bases.take(some)
    counts = pa.table(
        [bases["partition"], bases["file_id"], bases["base_path"], pa.array(updates).take(some)], schema=COUNTS_SCHEMA
    )
    if new:
        more = pa.table([[partition], [None], [None], [new]], schema=COUNTS_SCHEMA)
        counts = pa.concat_tables([counts, more])
    return build_workload_profile(counts, tagging.bases, tagging.placement, logs=context.logs is not None)
