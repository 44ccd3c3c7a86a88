"""Versions of the records of a slice's log files, collected block by block and folded into one each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from pyhudi.merge.batch_sizes import MergeMemory, rows_within
from pyhudi.merge.logs.merged_log_records import MergedLogRecords, RecordIdentity, StoredVersions
from pyhudi.merge.logs.spillable_log_rows import NO_ROW, SpillableLogRows
from pyhudi.merge.modes.merge_by_mode import Given, Versions, dense, fold, given_rows
from pyhudi.merge.modes.merge_rules import MergeRules
from pyhudi.merge.modes.record_versions import RecordVersions, fold_record_versions
from pyhudi.merge.ordering_values import Index, Mask, ranks_of_rows

_CUSTOM_ROWS = 262_144
"""Approximate number of versions passed to a custom merger at a time."""


class LogRecordVersions:
    """Collects versions in the order in which they were written.

    ``schema`` are the columns kept of each version; ``rules`` are `MergeRules.present` for it. Keys, ordering values
    and flags stay in memory, the other columns in a `SpillableLogRows` with the budget of ``memory``. Records are
    identified by their key or, if all versions have positions, by the row of the base file.
    """

    def __init__(
        self,
        schema: pa.Schema,
        rules: MergeRules,
        memory: MergeMemory,
    ) -> None:
        self._schema, self._rules = schema, rules
        self._memory = memory
        self._store = SpillableLogRows(schema, memory.budget, memory.spill_folder)
        self._keys: list[pa.Array] = []
        self._positions: list[Index] = []
        self._rows: list[Index] = []
        self._is_delete: list[Mask] = []
        self._natural: list[Mask] = []
        self._ordering: list[tuple[pa.Array, ...]] = []
        self._assigned: list[tuple[frozenset[str] | None, int]] = []

    def add_rows(self, versions: RecordVersions, where: pa.Array | Index, present: frozenset[str] | None) -> None:
        """Add the records of a data block.

        ``where`` are their keys, or their positions; ``present`` are the columns in a block of partial updates (None:
        all).
        """
        self._add(versions.is_delete, versions.natural, versions.ordering, where)
        self._rows.append(self._store.append(versions.rows))
        self._assigned.append((present, len(versions)))

    def add_deletes(self, natural: Mask, ordering: tuple[pa.Array, ...], where: pa.Array | Index) -> None:
        """Add the deletes of a delete block."""
        count = len(natural)
        self._add(np.ones(count, dtype=np.bool_), natural, ordering, where)
        self._rows.append(np.full(count, NO_ROW, dtype=np.int64))
        self._assigned.append((None, count))

    def __len__(self) -> int:
        return sum(map(len, self._is_delete))

    def close(self) -> None:
        """Release the rows, including those of the `MergedLogRecords` created from them."""
        self._store.close()

    def _add(self, is_delete: Mask, natural: Mask, ordering: tuple[pa.Array, ...], where: pa.Array | Index) -> None:
        if isinstance(where, np.ndarray):
            self._positions.append(where)
        else:
            self._keys.append(where)
        self._is_delete.append(is_delete)
        self._natural.append(natural)
        self._ordering.append(ordering)

    def fold(self) -> MergedLogRecords:
        """Fold the versions into one per record. Consumes the collection."""
        self._store.freeze()
        identity, record = self._records()
        versions = StoredVersions(
            rows=_concatenate(self._rows),
            sources={},
            is_delete=_concatenate(self._is_delete, np.bool_),
            natural=_concatenate(self._natural, np.bool_),
            ordering=tuple(pa.concat_arrays(list(parts)) for parts in zip(*self._ordering, strict=True)),
            assigned=self._assigned_masks(),
        )
        if self._rules.merger is not None:
            return self._folded_by_merger(identity, record, versions)
        return MergedLogRecords(self._store, identity, self._winners(record, versions), self._memory.batch_bytes)

    def _winners(self, record: Index, versions: StoredVersions) -> StoredVersions:
        """Return the winning version of each record."""
        rows, assigned = versions.rows, versions.assigned
        folded = fold(
            Versions(
                record,
                versions.is_delete,
                versions.natural,
                partial(ranks_of_rows, versions.ordering) if self._rules.ordering_fields else None,
                {
                    name: there
                    for i, name in enumerate(self._schema.names)
                    if (there := self._given_of(i, rows, assigned.get(name))) is not None
                },
                newest=self._rules.newest_columns(self._schema),
            )
        )
        winner = folded.winner
        return StoredVersions(
            rows=rows[winner],
            sources={name: rows[source] for name, source in folded.sources.items()},
            is_delete=versions.is_delete[winner],
            natural=versions.natural[winner],
            ordering=tuple(column.take(pa.array(winner)) for column in versions.ordering),
            assigned={name: mask[folded.sources.get(name, winner)] for name, mask in assigned.items()},
        )

    def _records(self) -> tuple[RecordIdentity, Index]:
        """Return the identity of the records, and the record number of every version."""
        if self._positions:
            positions, record = np.unique(_concatenate(self._positions), return_inverse=True)
            return RecordIdentity(None, positions), record
        encoded = pa.chunked_array(self._keys, pa.string()).combine_chunks().dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return RecordIdentity(encoded.dictionary, None), numbers

    def _assigned_masks(self) -> dict[str, Mask]:
        """Return masks of the versions that have a column, for the columns that some block omits."""
        masks = {}
        for name in self._schema.names:
            if any(present is not None and name not in present for present, _ in self._assigned):
                parts = [np.full(n, present is None or name in present) for present, n in self._assigned]
                masks[name] = np.concatenate(parts)
        return masks

    def _given_of(self, column: int, rows: Index, assigned: Mask | None) -> Given | None:
        def by_value(which: Index) -> Mask | None:
            return self._given_by_value(column, rows[which])

        return given_rows(assigned, None if self._rules.partial is None else by_value)

    def _given_by_value(self, column: int, rows: Index) -> Mask | None:
        """Return a mask of the stored rows that have a column, as far as its values determine this; computed in
        chunks."""
        size = rows_within(self._memory.batch_bytes, self._store.widest, _CUSTOM_ROWS)
        result = np.ones(len(rows), dtype=np.bool_)
        is_all = True
        for start in range(0, len(rows), size):
            values = self._store.take_column(column, rows[start : start + size])
            part = self._rules.given(values, self._schema.field(column))
            if part is not None:
                result[start : start + size] = part
                is_all = False
        return None if is_all else result

    def _folded_by_merger(self, identity: RecordIdentity, record: Index, versions: StoredVersions) -> MergedLogRecords:
        """Fold by a custom merger, a limited number of records at a time."""
        result = SpillableLogRows(self._schema, self._memory.budget, self._memory.spill_folder)
        order = np.argsort(record, kind="stable")
        merged: list[RecordVersions] = []
        numbers: list[Index] = []
        size = rows_within(self._memory.batch_bytes, self._store.widest, _CUSTOM_ROWS)
        for chunk in _chunks(record[order], size):
            which = order[chunk]
            part = versions.record_versions(which, self._store.take(versions.rows[which]))
            part = replace(part, natural=part.is_delete)
            one = fold_record_versions(part, dense(record[which])[0], self._rules)
            numbers.append(result.append(one.rows))
            merged.append(RecordVersions(one.rows.slice(0, 0), one.is_delete, one.natural, one.ordering, one.assigned))
        result.freeze()
        self._store.close()
        names = sorted({name for part in merged for name in part.assigned})
        winners = StoredVersions(
            rows=_concatenate(numbers),
            sources={},
            is_delete=_concatenate([part.is_delete for part in merged], np.bool_),
            natural=_concatenate([part.natural for part in merged], np.bool_),
            ordering=tuple(
                pa.concat_arrays(list(parts)) for parts in zip(*(part.ordering for part in merged), strict=True)
            ),
            assigned={name: np.concatenate([part.assigned[name] for part in merged]) for name in names},
        )
        return MergedLogRecords(result, identity, winners, self._memory.batch_bytes)


def _concatenate(parts: Sequence[np.ndarray], kind: type = np.int64) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _chunks(groups: Index, size: int) -> list[slice]:
    """Return slices of about ``size`` rows that split no group; ``groups`` are sorted."""
    if not len(groups):
        return []
    starts = np.flatnonzero(np.concatenate(([True], np.diff(groups) != 0)))
    cuts = [0]
    while cuts[-1] < len(groups):
        after = np.searchsorted(starts, cuts[-1] + size, side="left")
        cuts.append(int(starts[after]) if after < len(starts) else len(groups))
    return [slice(a, b) for a, b in pairwise(cuts)]
