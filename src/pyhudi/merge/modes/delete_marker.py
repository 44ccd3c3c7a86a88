"""Delete markers: the predefined column, or the table's own marker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.ordering_values import Mask, as_mask
from pyhudi.schema.meta_fields import OPERATION
from pyhudi.table.config.merge_settings import DELETE_FIELD, DELETE_MARKER, MergeSettings

IS_DELETED = "_hoodie_is_deleted"
"""Boolean column that marks a delete if true, in every merge mode."""
_DELETING = pa.array(["D", "-U"])
"""Values of ``_hoodie_operation`` of records that are deleted, or about to be replaced."""


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """Delete marker in addition to ``_hoodie_is_deleted``: ``field`` equals ``marker``."""

    field: str | None = None
    marker: str | None = None

    @classmethod
    def from_settings(cls, settings: MergeSettings) -> DeleteMarker:
        """Return the markers of a table. Its own marker requires both properties."""
        name, marker = settings.properties.get(DELETE_FIELD), settings.properties.get(DELETE_MARKER)
        return cls() if name is None or marker is None else cls(name, marker)

    def columns(self, schema: pa.Schema) -> list[str]:
        """Return the columns of a schema that markers use."""
        names = []
        if IS_DELETED in schema.names and pa.types.is_boolean(schema.field(IS_DELETED).type):
            names.append(IS_DELETED)
        if self.field is not None and self.field in schema.names and self.field not in names:
            names.append(self.field)
        if OPERATION in schema.names:
            names.append(OPERATION)
        return names

    def mask(self, rows: pa.RecordBatch) -> Mask:
        """Return a mask of the rows that are deletes."""
        deleted = np.zeros(rows.num_rows, dtype=np.bool_)
        for name in self.columns(rows.schema):
            column = rows.column(name)
            if name == IS_DELETED and pa.types.is_boolean(column.type):
                deleted |= as_mask(column)
            if name == OPERATION:
                deleted |= as_mask(pc.is_in(column, value_set=_DELETING))
            if name == self.field and not pa.types.is_nested(column.type):
                deleted |= as_mask(pc.equal(column.cast(pa.string()), self.marker))
        return deleted
