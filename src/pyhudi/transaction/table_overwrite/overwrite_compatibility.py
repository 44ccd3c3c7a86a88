"""Parts of an overwritten table that are kept for its readers when another one takes its place."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pyhudi.schema.arrow_avro import from_avro, to_avro
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.table_types import as_nullable

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.table.config.table_config import TableConfig

_TIMESTAMPS = "hoodie.keygen.timebased."
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


class Remains(Enum):
    """Parts of an overwritten table that are kept."""

    NOTHING = "nothing"
    """Its partitions mean nothing to the new table: other readers would take its folders for values."""
    FILES = "files"
    """Its data files, hidden as replaced, until a cleaner deletes them."""
    HISTORY = "history"
    """Its completed instants, too: they are read with the new table's properties as with its own."""


def remains_of(old: TableConfig, old_columns: pa.Schema, new: TableConfig, new_columns: pa.Schema) -> Remains:
    """Return the parts of a table that can be kept when one with other properties and columns takes its place.

    Args:
        old: The table that is there.
        old_columns: Its columns; none if nothing was written.
        new: The table that takes its place.
        new_columns: The columns of that one.

    Returns:
        As much as both Apache Hudi and pyhudi read rightly under the new table's properties.
    """
    if not _same(old, new, _PARTITIONING) or _timestamps(old) != _timestamps(new):
        return Remains.NOTHING
    before, after = _types(old_columns), _types(new_columns)
    if any(f.name in after and before.get(f.name, after[f.name]) != after[f.name] for f in new.partition_fields):
        return Remains.NOTHING
    dropped = {f.name for f in new.partition_fields} if new.drop_partition_columns else set()
    evolved = all(after.get(name) == kind for name, kind in before.items() if name not in dropped)
    same_timeline = (old.version, old.layout, old.timezone) == (new.version, new.layout, new.timezone)
    return Remains.HISTORY if evolved and same_timeline and _same(old, new, _ROWS) else Remains.FILES


def _types(columns: pa.Schema) -> dict[str, pa.DataType]:
    """Types of a table's own columns as commits record them."""
    recorded = from_avro(to_avro(remove_meta_columns(columns), "t"))
    return {field.name: field.type for field in as_nullable(recorded)}


def _same(old: TableConfig, new: TableConfig, names: tuple[str, ...]) -> bool:
    return all(getattr(old, name) == getattr(new, name) for name in names)


def _timestamps(config: TableConfig) -> dict[str, str]:
    return {key: value for key, value in config.properties.items() if key.startswith(_TIMESTAMPS)}
