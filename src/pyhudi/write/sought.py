"""Upserts whose rows come to the tasks by partition: a task looks up itself where the keys of a partition are.

So the rows are sent once, with nothing looked up, joined or counted by file group before. The price is that one task
has all rows of a partition and reads all its keys, which is worth it for partitions of moderate size only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.filenames import file_prefix_of, new_file_id
from pyhudi.merge.dedupe import Dedupe
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.write.columns import DELETE
from pyhudi.write.context import TaskId, WriteContext
from pyhudi.write.groups import group_keys
from pyhudi.write.held import HeldRows, Index
from pyhudi.write.incoming import GroupedRows, GroupKey
from pyhudi.write.keyed import KeyIndex, PlacedRows, base_keys, hold
from pyhudi.write.profile import Sizing
from pyhudi.write.status import encode_stats
from pyhudi.write.task import GroupWriter
from pyhudi.write.workload import COUNTS_SCHEMA, Workload, plan_workload

BASES_SCHEMA = pa.schema(
    [("partition", pa.string()), ("file_id", pa.string()), ("base_path", pa.string()), ("base_size", pa.int64())]
)
"""Base files in which keys are looked up; sizes in bytes."""


@dataclass(frozen=True, slots=True)
class Sought:
    """How rows find their places.

    ``bases`` (BASES_SCHEMA) are the base files of the partitions that are written to, ``small`` (SMALL_FILES_SCHEMA)
    those that may take more records. ``sizing``, ``record_size`` (bytes) and ``fill_ratio`` say how new records are
    spread over files (`plan_workload`); ``dedupe`` how rows of one key are merged before (None: they are not).
    """

    bases: pa.Table
    small: pa.Table
    sizing: Sizing
    record_size: int
    fill_ratio: int
    dedupe: Dedupe | None

    def of(self, partition: str) -> Sought:
        """The same for one partition."""
        bases, small = (
            t.filter(pc.equal(t["partition"], partition)).combine_chunks() for t in (self.bases, self.small)
        )
        return Sought(bases, small, self.sizing, self.record_size, self.fill_ratio, self.dedupe)


def sought_task(batches: Iterable[pa.RecordBatch], context: WriteContext, task: TaskId, sought: Sought) -> bytes:
    """Write rows that are sorted by partition, with empty file ids and no positions.

    Memory: the buffer of *context* for a partition's rows, from there on a temporary file; the keys of a partition's
    rows and of one base file at a time.
    """
    writer = GroupWriter(context, task)
    rows = GroupedRows(batches)
    for partition in rows.groups():
        with HeldRows(context.buffer_size) as held:
            hold(rows, partition, sought.dedupe, held)
            for key, placed, filled in _placed(partition.partition, held, context, sought):
                writer.write(key, placed, append=not filled)
    return encode_stats(writer.stats)


def _placed(
    partition: str, held: HeldRows, context: WriteContext, sought: Sought
) -> Iterator[tuple[GroupKey, PlacedRows, bool]]:
    """The file groups of one partition that are written, with their rows, and whether new records are among them."""
    if not held.num_rows:
        return
    here = sought.of(partition)
    keys = KeyIndex.of(held.column(RECORD_KEY))
    new = ~pc.fill_null(held.column(DELETE), False).to_numpy()
    found: list[tuple[Index, Index]] = []
    for path in here.bases["base_path"].to_pylist():
        found.append(keys.match(base_keys(context.storage, path)))
        new[found[-1][1]] = False
    fresh = np.flatnonzero(new).astype(np.int64)
    work = _workload(partition, here, np.array([len(p) for p, _ in found], dtype=np.int64), len(fresh), context)
    base_of = pc.index_in(group_keys(work.groups), value_set=group_keys(here.bases)).to_pylist()
    bucket_of = pc.index_in(group_keys(work.groups), value_set=group_keys(work.buckets)).to_pylist()
    rows = work.buckets["rows"].to_numpy()
    ends = np.cumsum(rows)
    none: Index = np.zeros(0, dtype=np.int64)
    for base, bucket, file_id, path in zip(
        base_of, bucket_of, work.groups["file_id"].to_pylist(), work.groups["base_path"].to_pylist(), strict=True
    ):
        positions, numbers = (none, none) if base is None else found[base]
        mine = none if bucket is None else fresh[ends[bucket] - rows[bucket] : ends[bucket]]
        opened = file_id if path else _opened(context.instant, partition, bucket)
        yield GroupKey(partition, opened, path), PlacedRows(held, positions, numbers, mine), bucket is not None


def _opened(instant: str, partition: str, number: int) -> str:
    """The id of a new file group: every attempt of a task gives the same."""
    return new_file_id(file_prefix_of(f"{instant}/{partition}/{number}"), 0)


def _workload(partition: str, here: Sought, updates: Index, new: int, context: WriteContext) -> Workload:
    """What is written in one partition; ``updates`` are numbers of rows by base file."""
    some = pa.array(np.flatnonzero(updates))
    bases = here.bases.take(some)
    counts = pa.table(
        [bases["partition"], bases["file_id"], bases["base_path"], pa.array(updates).take(some)], schema=COUNTS_SCHEMA
    )
    if new:
        more = pa.table([[partition], [None], [None], [new]], schema=COUNTS_SCHEMA)
        counts = pa.concat_tables([counts, more])
    return plan_workload(
        counts,
        here.bases,
        here.small,
        here.sizing,
        here.record_size,
        logs=context.logs is not None,
        fill_ratio=here.fill_ratio,
    )
