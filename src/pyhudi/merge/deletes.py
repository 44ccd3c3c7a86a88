"""Which rows are deletes: by the column that every table may have, or by the table's own marker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.merge.ordering import Mask, as_mask
from pyhudi.table.merging import DELETE_FIELD, DELETE_MARKER, MergeSettings

IS_DELETED = "_hoodie_is_deleted"
"""Boolean column of the user: true marks a delete, in every merge mode."""


@dataclass(frozen=True, slots=True)
class DeleteMarks:
    """What marks a row as a delete, besides ``_hoodie_is_deleted``: ``field`` holds exactly ``marker``."""

    field: str | None = None
    marker: str | None = None

    @classmethod
    def of_table(cls, settings: MergeSettings) -> DeleteMarks:
        """The marks of a table; it has a marker of its own only with both properties."""
        name, marker = settings.properties.get(DELETE_FIELD), settings.properties.get(DELETE_MARKER)
        return cls() if name is None or marker is None else cls(name, marker)

    def columns(self, schema: pa.Schema) -> list[str]:
        """The columns of a schema that have to be looked at."""
        found = []
        if IS_DELETED in schema.names and pa.types.is_boolean(schema.field(IS_DELETED).type):
            found.append(IS_DELETED)
        if self.field is not None and self.field in schema.names:
            found.append(self.field)
        return found

    def mask(self, rows: pa.RecordBatch) -> Mask:
        """Which rows are deletes."""
        found = np.zeros(rows.num_rows, dtype=np.bool_)
        for name in self.columns(rows.schema):
            column = rows.column(name)
            if name == IS_DELETED and pa.types.is_boolean(column.type):
                found |= as_mask(column)
            if name == self.field and not _is_nested(column.type):
                found |= as_mask(pc.equal(column.cast(pa.string()), self.marker))
        return found


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))
