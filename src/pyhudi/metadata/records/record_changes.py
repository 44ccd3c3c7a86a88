"""Changes to one partition of the metadata table: written records and deleted keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.metadata.records.file_group_hash import file_group_index_of

_NO_KEYS = pa.array([], pa.string())


_NO_VALUES = pa.array([], pa.binary())


@dataclass(frozen=True, slots=True)
class RecordChanges:
    """Changes to one partition of the metadata table: unique ``keys`` (text) with their ``values`` (binary, as returned
    by `pyhudi.metadata.records.metadata_record.encode`), and deleted keys."""

    keys: pa.Array = field(default_factory=lambda: _NO_KEYS)
    values: pa.Array = field(default_factory=lambda: _NO_VALUES)
    deletes: pa.Array = field(default_factory=lambda: _NO_KEYS)

    def __len__(self) -> int:
        return len(self.keys) + len(self.deletes)

    def sorted(self) -> tuple[pa.Array, pa.Array]:
        """Return keys (bytes) and values in HFile order."""
        keys = self.keys.cast(pa.binary())
        order = pc.sort_indices(keys)
        return keys.take(order), self.values.take(order)

    def by_group(self, groups: int) -> dict[int, RecordChanges]:
        """Return the records by number of their file group."""
        if groups <= 1:
            return {0: self} if len(self) else {}
        of_keys, of_deletes = file_group_index_of(self.keys, groups), file_group_index_of(self.deletes, groups)
        numbers = np.union1d(of_keys, of_deletes)
        return {int(n): self._filter(of_keys == n, of_deletes == n) for n in numbers}

    def _filter(self, keys: np.ndarray[Any, Any], deletes: np.ndarray[Any, Any]) -> RecordChanges:
        mask = pa.array(keys)
        return RecordChanges(self.keys.filter(mask), self.values.filter(mask), self.deletes.filter(pa.array(deletes)))
