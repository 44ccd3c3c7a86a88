"""Custom mergers: the interface for the merge mode CUSTOM, and its arguments.

A merger is registered in code with :func:`pyhudi.register_merger`, under the strategy id in the table's
``hoodie.record.merge.strategy.id``. The same object then merges the rows of a batch before a write, the rows of a
copy-on-write update, the versions of a merge-on-read snapshot and those of a compaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.ordering_values import newer_wins


@dataclass(frozen=True, slots=True)
class Records:
    """Versions of records: one per row, each with a different key.

    Attributes:
        rows: Columns of the table (those that the query or the merger needs), including meta columns if the table has
            them.
        is_delete: Delete flag of each row, never null. The columns of a delete are null except, in most cases, its key.
        ordering: One array per ordering field of the table, including the values of deletes; null means none.
        assigned: For partial updates: for each column that a version may omit, a mask of the rows that have it. Columns
            without a mask are in every row.
    """

    rows: pa.RecordBatch
    is_delete: pa.BooleanArray
    ordering: tuple[pa.Array, ...] = ()
    assigned: Mapping[str, pa.BooleanArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def with_rows(self, rows: pa.RecordBatch) -> Records:
        """Return the same records with other column values; delete flags and ordering values are unchanged.

        Args:
            rows: The new values, one row per record in the same order.
        """
        return replace(self, rows=rows)

    def take(self, indices: pa.Array) -> Records:
        """Return some of the records.

        Args:
            indices: Positions of the records, from 0, in the requested order.
        """
        return Records(
            self.rows.take(indices),
            self.is_delete.take(indices),
            tuple(column.take(indices) for column in self.ordering),
            {name: mask.take(indices) for name, mask in self.assigned.items()},
        )


class RecordMerger(ABC):
    """Merger of two versions of the same records.

    Subclasses define a ``strategy_id`` and `merge`. Mergers are called from several threads and are pickled to Spark's
    executors, so they hold no open resources and no state that changes. `merge` must be associative, since versions are
    merged in groups of any size: ``merge(merge(a, b), c)`` equals ``merge(a, merge(b, c))``.
    `pyhudi.testing.check_merger` tests that.
    """

    columns: Sequence[str] | None = None
    """Columns that `merge` uses, besides the ordering fields; None: all columns of the table. With a list, queries read
    only their own columns and these."""

    @property
    @abstractmethod
    def strategy_id(self) -> str:
        """The strategy id under which tables refer to this merger, a UUID by convention."""

    @abstractmethod
    def merge(self, older: Records, newer: Records) -> Records:
        """Merge aligned versions: row *i* of both is the same record.

        `choose` picks whole versions; `Records.with_rows` keeps deletes and ordering values.

        Args:
            older: Versions that were written earlier.
            newer: Versions that were written later, as many and in the same order.

        Returns:
            As many records in the same order, with the columns of ``newer.rows``; ``is_delete`` marks those that end up
            deleted.
        """

    def partial_merge(self, older: Records, newer: Records) -> Records:
        """Merge aligned versions of which some omit columns (``assigned``).

        By default the columns that ``newer`` omits are taken from ``older`` and the result is passed to `merge`; a
        column that neither has remains omitted. Deletes take over no columns. Versions with omitted columns are merged
        from the oldest to the newest.

        Args:
            older: Versions that were written earlier.
            newer: Versions that were written later, as many and in the same order.

        Returns:
            As many records in the same order.
        """
        return self.merge(older, completed(older, newer))


def choose(older: Records, newer: Records, newer_wins: pa.BooleanArray) -> Records:
    """Pick one of each pair of versions.

    Args:
        older: Versions that were written earlier.
        newer: Versions that were written later, as many and in the same order.
        newer_wins: Mask of the pairs of which the newer version is kept; null counts as false.

    Returns:
        The picked versions, in the same order.
    """
    mask = pc.fill_null(newer_wins, False)
    picks = np.arange(len(newer), dtype=np.int64)
    picks += np.where(mask.to_numpy(zero_copy_only=False), len(older), 0)
    return stacked(older, newer).take(pa.array(picks))


def newer_by_ordering(older: Records, newer: Records) -> pa.BooleanArray:
    """Return a mask of the pairs whose newer version wins by ordering values: all except those where it is less.

    Args:
        older: Versions that were written earlier.
        newer: Versions that were written later, as many and in the same order.
    """
    return pa.array(newer_wins(older.ordering, newer.ordering))


def completed(older: Records, newer: Records) -> Records:
    """Return the newer versions, except deletes, with omitted columns taken from the older ones."""
    if not newer.assigned:
        return newer
    both = pc.invert(pc.or_(older.is_delete, newer.is_delete))
    columns, assigned = [], {}
    for name, column in zip(newer.rows.schema.names, newer.rows.columns, strict=True):
        mask = newer.assigned.get(name)
        if mask is not None:
            fill = pc.and_(both, pc.invert(mask))
            picks = np.arange(len(newer)) + np.where(fill.to_numpy(zero_copy_only=False), len(newer), 0)
            column = pa.concat_arrays([column, older.rows.column(name)]).take(pa.array(picks))
            of_older = older.assigned.get(name)
            assigned[name] = pc.or_(mask, fill if of_older is None else pc.and_(fill, of_older))
        columns.append(column)
    rows = pa.RecordBatch.from_arrays(columns, schema=newer.rows.schema)
    return Records(rows, newer.is_delete, newer.ordering, assigned)


def stacked(first: Records, second: Records) -> Records:
    """Concatenate the records of both."""
    names = {*first.assigned, *second.assigned}
    return Records(
        pa.concat_batches([first.rows, second.rows.select(first.rows.schema.names).cast(first.rows.schema)]),
        pa.concat_arrays([first.is_delete, second.is_delete]),
        tuple(pa.concat_arrays([a, b]) for a, b in zip(first.ordering, second.ordering, strict=True)),
        {name: pa.concat_arrays([_assigned(first, name), _assigned(second, name)]) for name in sorted(names)},
    )


def _assigned(records: Records, name: str) -> pa.BooleanArray:
    mask = records.assigned.get(name)
    return pa.array(np.ones(len(records), dtype=np.bool_)) if mask is None else mask
