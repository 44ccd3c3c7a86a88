"""Filter of the records of log blocks, by their keys alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.format.log import BlockType, LogBlock
from pyhudi.merge.key_filter import KeyFilter
from pyhudi.schema.evolution.schema_projection import FileNames, conform, file_columns, with_table_names
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.schema.timestamp_units import with_actual_types

_MAX_SEARCHED = 16
"""Keys up to which the bytes of a block are searched for each: a search takes as long as decoding a few records."""
_NUMBER = "_pyhudi_record_number"
_VERSION = struct.Struct(">i")
_AVRO_DELETES = 3
"""Content version of delete blocks in Avro, in which text is stored as it is."""


@dataclass(frozen=True, slots=True)
class LogRecordFilter:
    """Filter of the records of log blocks.

    Attributes:
        rows: The filter of the read.
        schema: The columns that it evaluates.
        stored_keys: Records store their keys, and ``rows`` restricts them, so only keys are compared.
    """

    rows: KeyFilter
    schema: pa.Schema
    stored_keys: bool

    @classmethod
    def from_key_filter(cls, rows: KeyFilter, table: pa.Schema, *, stored_keys: bool) -> LogRecordFilter:
        """Return the filter for a table with these columns."""
        by_key = stored_keys and rows.keys is not None
        names = (RECORD_KEY,) if by_key else rows.columns
        return cls(rows, pa.schema([table.field(name) for name in names]), by_key)

    def columns(self, names: FileNames) -> dict[str, str]:
        """Return the columns that are evaluated, by their names in a block."""
        return file_columns(self.schema, names)

    def may_be_in(self, block: LogBlock) -> bool:
        """Return False if a block certainly contains no matching record: its bytes contain none of the keys."""
        keys = self.rows.keys
        if not self.stored_keys or keys is None or len(keys) > _MAX_SEARCHED:
            return True
        if block.type not in (BlockType.AVRO_DATA, BlockType.DELETE):
            return True
        content = bytes(block.content())
        if block.type is BlockType.DELETE and content[: _VERSION.size] != _VERSION.pack(_AVRO_DELETES):
            return True
        return any(key.encode() in content for key in keys)

    def numbers(self, names: FileNames, stored: pa.Table) -> pa.Array | None:
        """Return the numbers of the matching records, ascending; None: all of them, because the block lacks a column of
        the condition, as blocks of partial updates may."""
        inside = self.columns(names)
        if len(stored.column_names) < len(self.schema):
            return None
        batch = stored.combine_chunks().to_batches()
        if not batch:
            return pa.array([], pa.int64())
        named = with_actual_types(with_table_names(batch[0], inside, names), self.schema)
        rows = conform(named, self.schema)
        numbers = pa.array(np.arange(rows.num_rows))
        if self.stored_keys:
            return numbers.filter(pc.is_in(rows.column(0), value_set=self.rows.key_array()))
        matching = rows.append_column(_NUMBER, numbers).filter(self.rows.condition.expression)
        return matching.column(_NUMBER)
