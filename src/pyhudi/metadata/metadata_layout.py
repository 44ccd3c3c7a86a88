"""Location, name and properties of the metadata table, as set by Apache Hudi.

It is a merge-on-read table in ``.hoodie/metadata``. All paths are relative to the data table.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

import pyarrow as pa

from pyhudi.config import property_keys
from pyhudi.config.property_keys import TABLE_CHECKSUM
from pyhudi.errors import AlreadyExistsError
from pyhudi.format.file_names import file_names_of
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.storage.table_paths import METADATA_FOLDER, METADATA_META_FOLDER
from pyhudi.table.config.properties_text import format_properties, table_checksum
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.active_timeline import ActiveTimeline
from pyhudi.timeline.timeline_layout import Layout

# Partitions that occur once per table. `is_secondary` and `is_expression` identify the others, which are named after
# their indexes.
FILES = "files"
COLUMN_STATS = "column_stats"
PARTITION_STATS = "partition_stats"
BLOOM_FILTERS = "bloom_filters"
RECORD_INDEX = "record_index"

FILE_PARTITIONS = (FILES, COLUMN_STATS, PARTITION_STATS, BLOOM_FILTERS)
"""Partitions about files, in build order: every write maintains them from its write statuses or the written files,
without knowing which keys it has changed."""

PROPERTIES = f"{METADATA_META_FOLDER}/hoodie.properties"
HEARTBEATS = f"{METADATA_META_FOLDER}/.aux/pyhudi_heartbeats"
"""Folder of the heartbeats of the metadata table's compactions, which run without the lock of the table. Apache Hudi
must not see them: 1.2.0 executes a pending compaction when it writes, and fails if that has a heartbeat."""
HUDI_HEARTBEATS = f"{METADATA_META_FOLDER}/.heartbeat"
"""Folder of the heartbeats of Apache Hudi."""

_FILE_ID_PREFIXES: dict[str, str] = {COLUMN_STATS: "col-stats"}


def metadata_layout(version: int) -> Layout:
    """Return the timeline layout of the metadata table of a table of that version, relative to the table."""
    folder = METADATA_META_FOLDER
    if version < 8:
        return Layout(1, folder, f"{folder}/archived")
    return Layout(2, f"{folder}/timeline", f"{folder}/timeline/history")


def load_metadata_timeline(storage: Storage, version: int) -> ActiveTimeline:
    """Load the metadata table's active timeline by one listing."""
    return ActiveTimeline.load(storage, metadata_layout(version))


def file_group_ids(partition: str, count: int) -> list[str]:
    """Return the ids of the file groups of a partition of the metadata table."""
    prefix = _FILE_ID_PREFIXES.get(partition, partition.replace("_", "-"))
    return [f"{prefix}-{n:04d}-0" for n in range(count)]


def names_by_partition(storage: Storage, partitions: Collection[str]) -> dict[str, pa.Array]:
    """Return the names of the files in partitions of the metadata table, which threads list."""

    def names(partition: str) -> pa.Array:
        return file_names_of(storage.list(f"{METADATA_FOLDER}/{partition}")["path"])

    if len(partitions) < 2:
        return {partition: names(partition) for partition in partitions}
    return dict(zip(partitions, concurrent_map(names, partitions), strict=True))


def metadata_properties(config: TableConfig) -> dict[str, str]:
    """Return the content of the metadata table's ``hoodie.properties``, as written by the release of that table
    version."""
    version = config.version
    properties = {
        property_keys.NAME: f"{config.name}_metadata",
        property_keys.TYPE: "MERGE_ON_READ",
        property_keys.VERSION: str(version),
        property_keys.TIMELINE_LAYOUT_VERSION: "1" if version < 8 else "2",
        property_keys.ARCHIVELOG_FOLDER: "archived" if version < 8 else "history",
        property_keys.BASE_FILE_FORMAT: "HFILE",
        property_keys.RECORDKEY_FIELDS: "key",
        property_keys.POPULATE_META_FIELDS: "false",
        property_keys.PAYLOAD_CLASS: "org.apache.hudi.metadata.HoodieMetadataPayload",
        property_keys.DROP_PARTITION_COLUMNS: "false",
    }
    if version < 8:
        properties |= {
            property_keys.KEY_GENERATOR_CLASS: "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
            property_keys.RECORD_MERGER_STRATEGY: "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        }
    else:
        properties |= {
            property_keys.INITIAL_VERSION: str(version),
            property_keys.TIMELINE_PATH: "timeline",
            property_keys.TIMELINE_HISTORY_PATH: "history",
            property_keys.KEY_GENERATOR_TYPE: "HOODIE_TABLE_METADATA",
            property_keys.RECORD_MERGE_MODE: "CUSTOM",
            property_keys.RECORD_MERGE_STRATEGY_ID: "00000000-0000-0000-0000-000000000000",
        }
    properties[TABLE_CHECKSUM] = table_checksum(properties)
    return properties


def create_metadata_folders(storage: Storage, config: TableConfig) -> None:
    """Create the metadata table's folders and properties, unless they exist."""
    layout = metadata_layout(config.version)
    storage.make_dirs(layout.folder)
    storage.make_dirs(layout.history)
    now = datetime.now(UTC)
    comment = f"Properties saved on {now.strftime('%Y-%m-%dT%H:%M:%S.%fZ')}"
    try:
        storage.create(PROPERTIES, format_properties(metadata_properties(config), (comment,), now))
    except AlreadyExistsError:
        return
