"""Merged log records of a slice: one version of each record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyhudi.merge.batch_sizes import BATCH_ROWS, bounded_runs
from pyhudi.merge.logs.spillable_log_rows import SpillableLogRows
from pyhudi.merge.modes.record_versions import RecordVersions
from pyhudi.merge.ordering_values import Index, Mask, newer_wins


@dataclass(frozen=True, slots=True)
class RecordIdentity:
    """Identifiers of the records of a slice, ascending: their keys or, if all versions have them, their positions in
    the base file."""

    keys: pa.Array | None
    positions: Index | None


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """Versions of records: flags and ordering values in memory, the other columns in a row store.

    Attributes:
        rows: Numbers of their rows in the store.
        sources: Rows that have the values of single columns, where they are not those of ``rows`` (partial updates).
        is_delete: Versions that delete their record.
        natural: Deletes without an ordering value.
        ordering: Ordering values, by ordering field.
        assigned: Versions that have a column, for the columns that some block omits.
    """

    rows: Index
    sources: Mapping[str, Index]
    is_delete: Mask
    natural: Mask
    ordering: tuple[pa.Array, ...]
    assigned: Mapping[str, Mask]

    def record_versions(self, which: Index, rows: pa.RecordBatch) -> RecordVersions:
        """Return some of the versions with their rows."""
        picked = pa.array(which)
        return RecordVersions(
            rows,
            self.is_delete[which],
            self.natural[which],
            tuple(column.take(picked) for column in self.ordering),
            {name: mask[which] for name, mask in self.assigned.items()},
        )


class MergedLogRecords:
    """Merged records of the logs: one version each.

    ``keys`` or ``positions`` (ascending) identify the records; ``is_delete`` marks deleted ones. `changes` returns the
    versions of some of them.
    """

    def __init__(
        self,
        store: SpillableLogRows,
        identity: RecordIdentity,
        versions: StoredVersions,
        batch_bytes: int,
    ) -> None:
        self._store = store
        self._batch_bytes = batch_bytes
        self._versions = versions
        self.keys, self.positions = identity.keys, identity.positions
        self.is_delete = versions.is_delete

    def __len__(self) -> int:
        return len(self.is_delete)

    def batches(self, which: Mask) -> Iterator[Index]:
        """Yield the numbers of the records of a mask, in batches."""
        records = np.flatnonzero(which)
        for run in self.runs(records, BATCH_ROWS):
            yield records[run]

    @property
    def row_bytes(self) -> float:
        """Return the average bytes of a version."""
        return self._store.row_bytes

    def runs(self, records: Index, max_rows: int) -> Iterator[slice]:
        """Split the numbers of records into runs whose versions fit into memory."""
        if min(len(records), max_rows) * self._store.widest <= self._batch_bytes:  # Narrow rows need no measurement.
            for first in range(0, len(records), max_rows):
                yield slice(first, first + max_rows)
            return
        sizes = np.zeros(len(records), dtype=np.float64)
        for i, name in enumerate(self._store.schema.names):
            sizes += self._store.bytes_of(i, self._rows_of(name)[records])
        yield from bounded_runs(sizes, self._batch_bytes, max_rows)

    def winners(self, which: Index, older: Sequence[pa.Array]) -> Mask:
        """Return a mask of the records whose versions win against older ones with the given ordering values."""
        picked = pa.array(which)
        return (
            newer_wins(older, [column.take(picked) for column in self._versions.ordering])
            | self._versions.natural[which]
        )

    def changes(self, which: Index) -> RecordVersions:
        """Return the versions of these records."""
        columns = [
            self._store.take_column(i, self._rows_of(name)[which]) for i, name in enumerate(self._store.schema.names)
        ]
        rows = (
            pa.RecordBatch.from_arrays(columns, schema=self._store.schema)
            if columns
            else self._store.take(self._versions.rows[which])
        )
        return self._versions.record_versions(which, rows)

    def close(self) -> None:
        """Release the rows."""
        self._store.close()

    def _rows_of(self, column: str) -> Index:
        """Return the numbers of the rows that have the values of a column."""
        return self._versions.sources.get(column, self._versions.rows)
