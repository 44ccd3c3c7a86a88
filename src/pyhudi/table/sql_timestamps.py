"""Form of timestamps in the partition paths of tables that Apache Hudi's SQL has created.

Apache Hudi's key generators write epoch microseconds (``ts=1704164645000000``), but its SQL statements write
``ts=2024-01-02 03%3A04%3A05``. The properties of a table do not tell which of them have written to it: its folders do.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa

from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.schema.name_resolution import field_type
from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import META_FOLDER
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionKind
from pyhudi.table.config.table_config import TableConfig

_SQL_TIMESTAMP = re.compile(r"(?:[^/=]+=)?\d{4,}-\d\d-\d\d \d\d%3A\d\d%3A\d\d")


def has_sql_timestamps(storage: Storage, config: TableConfig) -> bool:
    """Return True if timestamps in partition paths of a table have the form of Apache Hudi's SQL statements. Lists one
    folder for each partition column up to the first that has timestamps."""
    place = _first_instant(config)
    if place is None:
        return False
    folder = ""
    for _ in range(place):
        names = _folders(storage, folder)
        if not names:
            return False
        folder = join_path(folder, names[0])
    return any(map(_SQL_TIMESTAMP.fullmatch, _folders(storage, folder)))


def _folders(storage: Storage, folder: str) -> list[str]:
    return [name for name in storage.list_dirs(folder) if name != META_FOLDER]


@lru_cache(maxsize=32)  # a write asks several times
def _schema(avro: str) -> pa.Schema:
    return from_avro(avro)


def _first_instant(config: TableConfig) -> int | None:
    """Return the position of the first partition column of a table created by SQL that has timestamps, as they are."""
    if config.create_schema is None or config.keygen in (KeyGenType.TIMESTAMP, KeyGenType.USER_PROVIDED):
        return None
    if not config.partition_fields:
        return None
    schema = _schema(config.create_schema)
    for place, field in enumerate(config.partition_fields):
        data_type = field_type(schema, field.name)
        is_instant = data_type is not None and pa.types.is_timestamp(data_type) and data_type.tz is not None
        if is_instant and field.kind is PartitionKind.SIMPLE:
            return place
    return None
