"""Parts of an overwritten table that are kept for its readers."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

from pyhudi.config.property_keys import TIMESTAMP_KEYGEN_PREFIX
from pyhudi.schema.converters.arrow_avro import from_avro, to_avro
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.table_types import as_nullable
from pyhudi.table.config.table_config import TableConfig

_PARTITIONING = ("partition_fields", "keygen", "hive_style", "url_encode", "slash_dates")
_ROWS = (
    "record_keys",
    "table_type",
    "base_file_format",
    "populate_meta_fields",
    "drop_partition_columns",
    "merging",
    "cdc_enabled",
)


class RetainedParts(Enum):
    """Parts of an overwritten table that are kept."""

    NOTHING = "nothing"
    """Nothing, because its partitions do not match the new table: other readers would interpret its folders as
    values."""
    FILES = "files"
    """Its data files, hidden as replaced, until a cleaner deletes them."""
    HISTORY = "history"
    """Its completed instants, too: they can be read with the properties of the new table."""


def retained_parts(
    old: TableConfig,
    old_columns: pa.Schema,
    new: TableConfig,
    new_columns: pa.Schema,
    *,
    columns_keep_names: bool = True,
) -> RetainedParts:
    """Return the parts of a table that can be kept when a table with other properties and columns replaces it.

    Args:
        old: The existing table.
        old_columns: Its columns; none if nothing was written.
        new: The new table.
        new_columns: The columns of the new table.
        columns_keep_names: No column of the old table was ever renamed, or has the name of an earlier one. Otherwise
            its files cannot be read without its history of schemas, which the new table does not continue.

    Returns:
        The parts that both Apache Hudi and pyhudi read correctly with the properties of the new table.
    """
    if not _have_equal_properties(old, new, _PARTITIONING) or _timestamps(old) != _timestamps(new):
        return RetainedParts.NOTHING
    before, after = _types(old_columns), _types(new_columns)
    if any(f.name in after and before.get(f.name, after[f.name]) != after[f.name] for f in new.partition_fields):
        return RetainedParts.NOTHING
    dropped = {f.name for f in new.partition_fields} if new.drop_partition_columns else set()
    evolved = all(after.get(name) == kind for name, kind in before.items() if name not in dropped)
    same_timeline = (old.version, old.layout, old.timezone) == (new.version, new.layout, new.timezone)
    return (
        RetainedParts.HISTORY
        if evolved and columns_keep_names and same_timeline and _have_equal_properties(old, new, _ROWS)
        else RetainedParts.FILES
    )


def _types(columns: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types of a table's own columns as recorded by commits."""
    recorded = from_avro(to_avro(remove_meta_columns(columns), "t"))
    return {field.name: field.type for field in as_nullable(recorded)}


def _have_equal_properties(old: TableConfig, new: TableConfig, names: tuple[str, ...]) -> bool:
    return all(getattr(old, name) == getattr(new, name) for name in names)


def _timestamps(config: TableConfig) -> dict[str, str]:
    return {key: value for key, value in config.properties.items() if key.startswith(TIMESTAMP_KEYGEN_PREFIX)}
