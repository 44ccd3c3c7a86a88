"""Base files that are copied from others without decoding, by a clustering or by an update of some columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.row_group_copy.row_group_copier import RowGroupCopier
from pyhudi.schema.meta_fields import FILE_NAME
from pyhudi.schema.table_types import as_nullable
from pyhudi.write.settings.write_context import WriteContext


def has_file_columns(context: WriteContext, schema: pa.Schema) -> bool:
    """Return True if a file with this schema has the current columns of the table, with their types, in their order."""
    return bool(_plain(schema) == _plain(context.columns.file_schema))


def new_copier(context: WriteContext, sink: Any, name: str) -> RowGroupCopier:
    """Return a copier that writes a base file of this name to a sink."""
    bloom = context.files.bloom or BloomOptions()
    constants = {FILE_NAME: name} if context.columns.populate_meta_fields else {}
    return RowGroupCopier(sink, constants, max(bloom.num_entries, bloom.dynamic_max))


def _plain(schema: pa.Schema) -> pa.Schema:
    return as_nullable(schema.remove_metadata())
