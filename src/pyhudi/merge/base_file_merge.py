"""Merging of base file rows with one later version each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from pyhudi.merge.mergers.merger_invocation import merge_pairs
from pyhudi.merge.modes.merge_by_mode import in_both
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, versions_of_records
from pyhudi.merge.modes.value_equality import equal_rows
from pyhudi.merge.ordering_values import Index, Mask, newer_wins
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.meta_fields import RECORD_KEY


@dataclass(frozen=True, slots=True)
class Merged:
    """The batch after the merge. ``changed`` marks the updates that changed their base row, ``deleted`` those that
    deleted it."""

    rows: pa.RecordBatch
    changed: Mask
    deleted: Mask


def merge_base(
    base: pa.RecordBatch, positions: Index, updates: RecordVersions, rules: MergeRules, *, stamp: Sequence[str] = ()
) -> Merged:
    """Merge later versions into base rows.

    ``positions`` are the distinct and ascending rows of the batch to which the updates belong; the updates have the
    columns of the batch. Base rows are not deletes. ``stamp`` are columns that every changed row takes from its update,
    even if the base row won and only missing values were filled.
    """
    if rules.merger is not None:
        return _merged_by(rules, base, positions, updates, stamp)
    dead = updates.is_delete
    wins = np.ones(len(positions), dtype=np.bool_)
    if rules.ordering_fields:
        wins = newer_wins(rules.stored(base, positions), updates.ordering) | updates.natural
    replaced, deleted = wins & ~dead, wins & dead
    fills = _Fills(base, positions, updates, rules, replaced=replaced, kept_base=~wins & ~dead)
    changed = replaced | fills.filled
    newest = frozenset(rules.newest_columns(base.schema)).difference(stamp)
    kept, none = _KeptRows.without(positions[deleted], base.num_rows), np.zeros(len(positions), dtype=np.bool_)
    columns = []
    for i, name in enumerate(base.schema.names):
        if name == RECORD_KEY:  # all versions of a record have it
            replaced_rows = none
        elif name in newest:
            replaced_rows = ~dead
        else:
            replaced_rows = changed if name in stamp else fills.replaced_mask(name)
        columns.append(kept.patched(base.column(i), updates.rows.column(name), positions, replaced_rows))
    return Merged(pa.RecordBatch.from_arrays(columns, schema=base.schema), changed, deleted)


def _merged_by(
    rules: MergeRules, base: pa.RecordBatch, positions: Index, updates: RecordVersions, stamp: Sequence[str]
) -> Merged:
    """Merge by a custom merger."""
    assert rules.merger is not None
    touched = base.take(pa.array(positions))
    older = RecordVersions.from_rows(touched, np.zeros(len(positions), dtype=np.bool_), rules, base.schema)
    newer = replace(updates, rows=updates.rows.select(base.schema.names))
    pairs = merge_pairs(older.as_records(), newer.as_records(), rules.merger)
    merged = versions_of_records(pairs, rules, base.schema)
    dead = merged.is_delete
    data_columns = [name for name in base.schema.names if not is_meta_column(name)]
    changed = ~dead & ~equal_rows(touched, merged.rows, data_columns)
    kept = _KeptRows.without(positions[dead], base.num_rows)
    columns = []
    for i, name in enumerate(base.schema.names):
        source = updates.rows.column(name) if name in stamp else merged.rows.column(i)
        columns.append(kept.patched(base.column(i), source, positions, changed))
    return Merged(pa.RecordBatch.from_arrays(columns, schema=base.schema), changed, dead)


class _Fills:
    """Columns of updates that replace values of their base rows."""

    def __init__(
        self,
        base: pa.RecordBatch,
        positions: Index,
        updates: RecordVersions,
        rules: MergeRules,
        *,
        replaced: Mask,
        kept_base: Mask,
    ) -> None:
        self._replaced = replaced
        self._replaced_by_column: dict[str, Mask] = {}
        self.filled = np.zeros(len(replaced), dtype=np.bool_)
        if rules.partial is None and not updates.assigned:
            return
        touched = pa.array(positions)
        for i, schema_field in enumerate(base.schema):
            name = schema_field.name
            is_given = updates.assigned.get(name)
            if rules.partial is not None:
                is_given = in_both(is_given, rules.given(updates.rows.column(name), schema_field))
            rows_to_replace = in_both(replaced, is_given)
            if rules.partial is not None and kept_base.any():
                had = rules.given(base.column(i).take(touched), schema_field)
                if had is not None:
                    gaps = in_both(kept_base & ~had, is_given)
                    rows_to_replace = rows_to_replace | gaps
                    self.filled |= gaps
            self._replaced_by_column[name] = rows_to_replace

    def replaced_mask(self, name: str) -> Mask:
        return self._replaced_by_column.get(name, self._replaced)


@dataclass(frozen=True, slots=True)
class _KeptRows:
    """Rows of a batch that are not deleted. ``mask``: None if none is."""

    mask: Mask | None

    @classmethod
    def without(cls, deleted: Index, num_rows: int) -> _KeptRows:
        """All rows but those at ``deleted``."""
        if not len(deleted):
            return cls(None)
        mask = np.ones(num_rows, dtype=np.bool_)
        mask[deleted] = False
        return cls(mask)

    def patched(self, base: pa.Array, new: pa.Array, positions: Index, taken: Mask) -> pa.Array:
        """Return the kept rows of a base column with ``new`` values at ``positions``, where ``taken``."""
        if not taken.any():
            return base if self.mask is None else base.filter(pa.array(self.mask))
        picks = np.arange(len(base), dtype=np.int64)
        picks[positions[taken]] = len(base) + np.flatnonzero(taken)
        return pa.concat_arrays([base, new]).take(pa.array(picks if self.mask is None else picks[self.mask]))
