"""Restriction of a read to the records with some keys.

All versions of a record are in one file group and agree on the record key and its fields. So versions of other records
need not be merged: not those of the base file, and not those of the logs.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyhudi.merge.base_file_rows import Condition


@dataclass(frozen=True, slots=True)
class KeyFilter:
    """Filter of the records that take part in a read.

    Attributes:
        condition: Condition on columns that are the same in all versions of a record.
        keys: The only record keys that can match; None: the condition does not restrict them.
    """

    condition: Condition
    keys: tuple[str, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns of the condition."""
        return self.condition.columns

    def key_array(self) -> pa.StringArray | None:
        """Return the record keys as an array."""
        return None if self.keys is None else pa.array(self.keys, pa.string())
