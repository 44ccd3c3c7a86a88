"""Mergers written by users: the interface for the merge mode CUSTOM, and the values that pass through it.

A merger is registered in code with :func:`pyhudi.register_merger`, under the strategy id that the table's
``hoodie.record.merge.strategy.id`` names. The same object then merges the rows of a batch before a write, the rows of a
copy-on-write update, the versions of a merge-on-read snapshot and those of a compaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.ordering import newer_wins


@dataclass(frozen=True, slots=True)
class Records:
    """Versions of records, one a row, each of another key.

    ``rows`` has the table's columns (those that the query or the merger needs), meta columns included where the table
    has them. ``is_delete`` has a value for every row; the columns of a delete are null except, mostly, its key.
    ``ordering`` holds one array for each ordering field of the table, with the values that deletes carry, too; null
    means none. ``given`` is for partial updates: for a column that a version may leave out, which rows have it.
    Columns that are not named there are in every row.
    """

    rows: pa.RecordBatch
    is_delete: pa.BooleanArray
    ordering: tuple[pa.Array, ...] = ()
    given: Mapping[str, pa.BooleanArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def with_rows(self, rows: pa.RecordBatch) -> Records:
        """The same records with other column values; deletes and ordering values stay."""
        return replace(self, rows=rows)

    def take(self, indices: pa.Array) -> Records:
        """Those records at the indices."""
        return Records(
            self.rows.take(indices),
            self.is_delete.take(indices),
            tuple(column.take(indices) for column in self.ordering),
            {name: mask.take(indices) for name, mask in self.given.items()},
        )


class RecordMerger(ABC):
    """Decides what becomes of two versions of the same records.

    Subclasses give a ``strategy_id`` and ``merge``. Mergers are called from several threads and are pickled to Spark's
    executors, so they hold no open resources and no state that changes. `merge` must be associative, since versions
    are merged in groups of any size: ``merge(merge(a, b), c)`` equals ``merge(a, merge(b, c))``.
    `pyhudi.testing.check_merger` finds out whether it is.
    """

    columns: Sequence[str] | None = None
    """Columns that `merge` looks at, besides the ordering fields; None: it gets all columns of the table. With a list,
    queries read only their own columns and these."""

    @property
    @abstractmethod
    def strategy_id(self) -> str:
        """The id under which tables name this merger, a UUID by convention."""

    @abstractmethod
    def merge(self, older: Records, newer: Records) -> Records:
        """Merge aligned versions: row *i* of both is the same record, ``newer`` was written later.

        Returns as many records in the same order, with the columns of ``newer.rows``; ``is_delete`` marks those that
        end up deleted. `choose` picks whole versions; `Records.with_rows` keeps deletes and ordering values.
        """

    def partial_merge(self, older: Records, newer: Records) -> Records:
        """Merge aligned versions of which some leave out columns (``given``).

        By default the columns that ``newer`` leaves out are taken from ``older`` and the result goes to `merge`; what
        neither has stays out. Deletes take nothing over. Versions with gaps are merged from the oldest to the newest.
        """
        return self.merge(older, completed(older, newer))


def choose(older: Records, newer: Records, newer_wins: pa.BooleanArray) -> Records:
    """Of each pair of versions the newer one where ``newer_wins`` is true, else the older one."""
    mask = pc.fill_null(newer_wins, False)
    picks = np.arange(len(newer), dtype=np.int64)
    picks += np.where(mask.to_numpy(zero_copy_only=False), len(older), 0)
    return stacked(older, newer).take(pa.array(picks))


def newer_by_ordering(older: Records, newer: Records) -> pa.BooleanArray:
    """Where the newer version wins by its ordering values: everywhere except where they are less."""
    return pa.array(newer_wins(older.ordering, newer.ordering))


def completed(older: Records, newer: Records) -> Records:
    """The newer versions with the columns that they leave out taken from the older ones, deletes aside."""
    if not newer.given:
        return newer
    both = pc.invert(pc.or_(older.is_delete, newer.is_delete))
    columns, given = [], {}
    for name, column in zip(newer.rows.schema.names, newer.rows.columns, strict=True):
        mask = newer.given.get(name)
        if mask is not None:
            fill = pc.and_(both, pc.invert(mask))
            picks = np.arange(len(newer)) + np.where(fill.to_numpy(zero_copy_only=False), len(newer), 0)
            column = pa.concat_arrays([column, older.rows.column(name)]).take(pa.array(picks))
            there = older.given.get(name)
            given[name] = pc.or_(mask, fill if there is None else pc.and_(fill, there))
        columns.append(column)
    rows = pa.RecordBatch.from_arrays(columns, schema=newer.rows.schema)
    return Records(rows, newer.is_delete, newer.ordering, given)


def stacked(first: Records, second: Records) -> Records:
    """All records of the first, then those of the second."""
    names = {*first.given, *second.given}
    return Records(
        pa.concat_batches([first.rows, second.rows.select(first.rows.schema.names).cast(first.rows.schema)]),
        pa.concat_arrays([first.is_delete, second.is_delete]),
        tuple(pa.concat_arrays([a, b]) for a, b in zip(first.ordering, second.ordering, strict=True)),
        {name: pa.concat_arrays([_given(first, name), _given(second, name)]) for name in sorted(names)},
    )


def _given(records: Records, name: str) -> pa.BooleanArray:
    mask = records.given.get(name)
    return pa.array(np.ones(len(records), dtype=np.bool_)) if mask is None else mask
