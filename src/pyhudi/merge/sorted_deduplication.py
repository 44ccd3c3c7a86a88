"""Deduplication of one batch of a write, streaming over sorted batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.empty_offsets import with_offsets
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, fold_record_versions, joined
from pyhudi.merge.ordering_values import Index, as_mask

_FIRST = "_pyhudi_first"
"""Helper column: number of a row in its batch."""


@dataclass(frozen=True, slots=True)
class SortedDeduplicator:
    """Folds rows by key. Can be pickled, so that it can be sent to executors.

    ``by`` are the key columns, ``delete`` the boolean column that marks deletes (null is false), ``drop`` columns that
    are removed from the result. ``hard_deletes``: deletes have no ordering value, regardless of their columns.
    """

    by: tuple[str, ...]
    delete: str
    rules: MergeRules
    drop: tuple[str, ...] = ()
    hard_deletes: bool = False

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row per key. ``batches`` are sorted by key, with rows of one key in order of arrival.

        Keys may continue in the next batch, so the last row is held back.
        """
        pending: RecordVersions | None = None
        for batch in with_offsets(batches):
            if not batch.num_rows:
                continue
            versions = self._changes(batch)
            if pending is not None:
                versions = joined(pending, versions)
            folded = fold_record_versions(versions, _runs(versions.rows, self.by), self.rules.present(batch.schema))
            last = np.array([len(folded) - 1], dtype=np.int64)
            if len(folded) > 1:
                yield self._rows(folded.take(np.arange(last[0], dtype=np.int64)))
            pending = folded.take(last)
        if pending is not None:
            yield self._rows(pending)

    def _changes(self, batch: pa.RecordBatch) -> RecordVersions:
        rules = self.rules.present(batch.schema)
        return RecordVersions.from_rows(
            batch, as_mask(batch.column(self.delete)), rules, batch.schema, hard_deletes=self.hard_deletes
        )

    def _rows(self, versions: RecordVersions) -> pa.RecordBatch:
        rows = versions.rows
        at = rows.schema.get_field_index(self.delete)
        rows = rows.set_column(at, rows.schema.field(at), pa.array(versions.is_delete))
        return rows.drop_columns(list(self.drop)) if self.drop else rows


def dedupe(rows: pa.RecordBatch, how: SortedDeduplicator) -> pa.RecordBatch:
    """Deduplicate one batch with any order of keys: one row per key, in order of first appearance."""
    if not rows.num_rows:
        return rows
    numbered = rows.append_column(_FIRST, pa.array(np.arange(rows.num_rows)))
    order = pc.sort_indices(numbered, [(name, "ascending") for name in (*how.by, _FIRST)])
    sorted_rows = numbered.take(order)
    runs = _runs(sorted_rows, how.by)
    first = sorted_rows.column(_FIRST).to_numpy()[np.flatnonzero(np.diff(runs, prepend=-1))]
    whole = replace(how, drop=(*how.drop, _FIRST))
    merged = pa.concat_batches(list(whole.run([sorted_rows])))
    return merged.take(pa.array(np.argsort(first)))


def _runs(rows: pa.RecordBatch, by: Sequence[str]) -> Index:
    """Return the numbers of the runs of equal keys, from 0."""
    count = rows.num_rows
    new = np.zeros(count, dtype=np.bool_)
    for name in by:
        column = rows.column(name)
        new[1:] |= as_mask(pc.not_equal(column.slice(1), column.slice(0, count - 1)))
    runs: Index = np.cumsum(new)
    return runs
