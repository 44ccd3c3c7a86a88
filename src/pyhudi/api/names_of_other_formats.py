"""Methods of tables in the Python libraries of Delta Lake and Iceberg, and what they are called here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_READ = "table.scan(), and of its result to_spark(), to_arrow(), to_pandas(), to_polars() or to_duckdb()"
_OLDER = "table.scan(as_of=instant); table.history() has the instants"
_SMALL_FILES = "table.services.cluster for small and unsorted files, table.services.compact for log files"
_CLEAN = "table.services.clean()"
_RESTORE = "table.services.restore(instant); table.history() has the instants"
_NAMES = {
    _READ: ("toDF", "to_df", "to_spark", "to_arrow", "to_pandas", "to_polars", "to_duckdb", "to_pyarrow_table", "read"),
    _OLDER: ("as_of", "load_as_version", "snapshot_by_id", "snapshot_as_of_timestamp"),
    _SMALL_FILES: ("optimize", "compact", "cluster", "z_order", "zorder", "rewrite_data_files"),
    _CLEAN: ("vacuum", "clean", "expire_snapshots"),
    _RESTORE: ("restore", "restoreToVersion", "restoreToTimestamp", "rollback", "rollback_to_snapshot"),
    "table.history()": ("snapshots", "commits", "versions", "log"),
    "table.latest_instant": ("version", "current_snapshot", "currentSnapshot"),
    "table.inspect.files(), .file_slices() and .partitions()": ("files", "file_uris", "partitions", "manifests"),
    "table.detail() and table.config": ("metadata", "properties", "spec", "protocol"),
    "table.alter_schema()": ("update_schema", "evolve_schema"),
    "table.services.change_properties()": ("transaction", "setProperties", "set_properties"),
    "table.services.upgrade": ("upgradeTableProtocol",),
    "table.insert(df), or table.upsert(df)": ("append", "write", "add_files"),
    "table.insert_overwrite(df) for the partitions of the rows, table.insert_overwrite_table(df) for all rows": (
        "overwrite",
        "dynamic_partition_overwrite",
    ),
    "table.changes(), with hoodie.table.cdc.enabled=true, and table.scan(begin=…)": ("load_cdf", "readChangeFeed"),
    "table.services.delete_orphan_files": ("remove_orphan_files", "delete_orphans"),
    "table.services.savepoint()": ("manage_snapshots", "create_tag", "create_branch"),
}
METHODS: Mapping[str, str] = MappingProxyType({name: cure for cure, names in _NAMES.items() for name in names})
"""What to call, by a name that `HudiTable` does not have."""
