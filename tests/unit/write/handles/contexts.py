"""Contexts of writes, from settings of all kinds by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pyarrow as pa

from pyhudi.storage import Storage
from pyhudi.write.settings.write_context import FileColumns, RowMerging, WriteContext


def write_context(storage: Storage, instant: str, schema: pa.Schema, **settings: Any) -> WriteContext:
    """Return a context; ``settings`` are fields of the context, of its columns, or of its merging."""

    def of(kind: type) -> dict[str, Any]:
        return {field.name: settings.pop(field.name) for field in fields(kind) if field.name in settings}

    columns, merging = FileColumns(schema, **of(FileColumns)), RowMerging(**of(RowMerging))
    return WriteContext(storage, instant, columns, merging, **settings)
