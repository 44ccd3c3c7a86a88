"""Bootstrap plan: source, columns of the table, and bootstrap mode of each file."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, Operation
from pyhudi.config.property_keys import BOOTSTRAP_UNFINISHED
from pyhudi.errors import ConfigError, SchemaMismatchError, TableExistsError, UnsupportedTableError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.keygen.partition_value_extractor import partition_fields
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.name_resolution import top_column
from pyhudi.schema.table_types import as_nullable, to_table_types
from pyhudi.services.bootstrap.source_folders import (
    check_folder_columns,
    check_partition_values,
    check_partitions,
    has_hive_style_folders,
    has_url_encoded_folders,
)
from pyhudi.services.bootstrap.source_listing import check_input_provider, list_source, select_mode
from pyhudi.storage import Storage, join_path, open_storage
from pyhudi.table.bootstrap_index import FULL_BOOTSTRAP, METADATA_BOOTSTRAP
from pyhudi.table.config.merge_settings import MergeSettings
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.locks.lock_factory import make_lock_provider
from pyhudi.write.settings.write_target import WriteTarget
from pyhudi.write.write_checks import check_writable


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """A bootstrap that has passed all checks that do not require data of its files.

    ``source`` is the bootstrapped folder, ``metadata_only`` and ``full`` its files
    (:data:`pyhudi.services.bootstrap.source_listing.LISTED_SCHEMA`) by bootstrap mode. ``schema`` are the table's
    columns; ``all_columns``: they are those of a file of the source, and no other file may have more.
    """

    target: WriteTarget
    spec: KeySpec
    source: Storage
    source_path: str
    schema: pa.Schema
    all_columns: bool
    metadata_only: pa.Table
    full: pa.Table

    @classmethod
    def from_options(cls, storage: Storage, write_opts: Options, columns: pa.Schema | None = None) -> BootstrapPlan:
        """Plan the bootstrap of options, for a table that need not exist yet.

        Args:
            storage: Storage of the table.
            write_opts: Options of the write.
            columns: The table's own columns; default: those of the source's first file.

        Raises:
            ConfigError: Options are missing, or do not match the source.
            SetupError: The lock requires a package that is not installed.
            SchemaMismatchError: Key or ordering columns are missing in the source.
            UnsupportedTableError: The source cannot be bootstrapped in this way.
        """
        base_path = write_opts.get_typed(options.BOOTSTRAP_BASE_PATH)
        if not base_path:
            raise ConfigError(f"a bootstrap requires the folder of its source: set {options.BOOTSTRAP_BASE_PATH.key}")
        opts = Options.parse({**write_opts, options.OPERATION.key: "bootstrap"})
        config = TableConfig.for_new_table(opts)
        source = open_storage(base_path, opts)
        _check_places(storage, source)
        _check_options(config, opts)
        listed = list_source(source, config, opts)
        opts = _with_style_of_folders(source, listed, config, opts)
        config = TableConfig.for_new_table(opts)
        check_partitions(source, listed, config)
        spec = KeySpec.from_config(config, opts)
        if spec.key_class or spec.path_class:
            raise UnsupportedTableError(
                f"the key generator {spec.key_class or spec.path_class} is not supported by bootstraps, which read "
                "keys from files without Spark; use one of Apache Hudi's generators, or write the rows"
            )
        if spec.auto_keys:
            raise ConfigError(f"a bootstrap requires a record key: set {options.RECORDKEY_FIELD.key}")
        metadata_only, full = select_mode(listed, opts)
        check_input_provider(opts)
        if metadata_only.num_rows:
            _check_metadata_only(config, opts)
        schema = _first_columns(source, listed, config) if columns is None else as_nullable(to_table_types(columns))
        check_partition_values(source, listed, config, spec, schema)
        opts = config.validate_against(opts)
        make_lock_provider(storage, opts)  # its options are checked before the table is created
        merging = config.merging_of_write(opts)
        check_writable(config, merging, Operation.BULK_INSERT, opts)
        _check_columns(schema, spec, merging)
        target = WriteTarget(storage, config, merging, opts)
        return cls(target, spec, source, base_path, schema, columns is None, metadata_only, full)


def remaining_bootstrap(client: TableMetaClient, plan: BootstrapPlan) -> BootstrapPlan:
    """Return the remaining part of the plan for an existing table: all of it, or the rest of an interrupted bootstrap,
    which is empty if that has committed everything and was not declared finished.

    Raises:
        TableExistsError: The table has other writes, or its bootstrap is complete.
        ConfigError: The table was bootstrapped from another source.
    """
    timeline = client.active_timeline().timeline
    done = {instant.requested for instant in timeline.completed() if instant.is_write}
    source_path = client.config.properties.get(options.BOOTSTRAP_BASE_PATH.key)
    if source_path is not None and source_path != plan.source_path:
        raise ConfigError(
            f"the table at {plan.target.storage.uri()} was bootstrapped from {source_path}, not from "
            f"{plan.source_path}; choose another path"
        )
    left = plan.full if METADATA_BOOTSTRAP in done else plan.metadata_only
    if not done and not _is_archived(client):
        return plan
    if done == {METADATA_BOOTSTRAP} and source_path is not None and left.num_rows:
        return replace(plan, metadata_only=plan.metadata_only.slice(0, 0))
    if BOOTSTRAP_UNFINISHED in client.config.properties and done == _instants(plan):
        return replace(plan, metadata_only=plan.metadata_only.slice(0, 0), full=plan.full.slice(0, 0))
    raise TableExistsError(
        f"the table at {plan.target.storage.uri()} has been written to, but a bootstrap requires a new one: choose "
        "another path, or delete the table"
    )


def _instants(plan: BootstrapPlan) -> set[str]:
    parts = {METADATA_BOOTSTRAP: plan.metadata_only, FULL_BOOTSTRAP: plan.full}
    return {instant for instant, files in parts.items() if files.num_rows}


def _is_archived(client: TableMetaClient) -> bool:
    return bool(client.storage.list(client.config.layout.history).num_rows)


def _check_places(storage: Storage, source: Storage) -> None:
    inside = f"{source.root}/"
    if storage.root == source.root or f"{storage.root}/".startswith(inside) or inside.startswith(f"{storage.root}/"):
        raise ConfigError(
            f"neither the table at {storage.uri()} nor the files of {source.uri()} may be inside the other's "
            "folder; choose another path for the table"
        )


def _with_style_of_folders(source: Storage, listed: pa.Table, config: TableConfig, opts: Options) -> Options:
    """Return the options with the style of partition paths that the names of folders have, where none is set.

    Raises:
        ConfigError: The folders are of other columns.
    """
    found = {}
    if not opts.is_set(options.HIVE_STYLE_PARTITIONING):
        check_folder_columns(source, listed, config)
        if has_hive_style_folders(listed, config):
            found[options.HIVE_STYLE_PARTITIONING.key] = "true"
    if not opts.is_set(options.URL_ENCODE_PARTITIONING) and has_url_encoded_folders(listed, opts):
        found[options.URL_ENCODE_PARTITIONING.key] = "true"
    return opts.merged(found)


def _check_options(config: TableConfig, opts: Options) -> None:
    if opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}=BUCKET: the rows of existing files are not in buckets; choose another index"
        )
    if config.drop_partition_columns:
        raise UnsupportedTableError(
            f"{options.DROP_PARTITION_COLUMNS.key}=true is not supported for a bootstrap, which does not change "
            "the columns of its source; leave the option out"
        )


def _check_metadata_only(config: TableConfig, opts: Options) -> None:
    if not config.populate_meta_fields:
        raise ConfigError(
            f"{options.POPULATE_META_FIELDS.key}=false: a metadata-only bootstrap writes only meta columns; use "
            f"FullRecordBootstrapModeSelector in {options.BOOTSTRAP_MODE_SELECTOR.key}"
        )
    if not opts.get_typed(options.BOOTSTRAP_INDEX_ENABLE):
        raise ConfigError(
            f"{options.BOOTSTRAP_INDEX_ENABLE.key}=false: the rows of a metadata-only bootstrap cannot be found "
            "without its index; leave the option out"
        )


def _first_columns(source: Storage, listed: pa.Table, config: TableConfig) -> pa.Schema:
    """Return the columns of the first file, and text columns for partition columns that are only in folder names."""
    path = join_path(listed["source_partition"][0].as_py(), listed["name"][0].as_py())
    with as_corruption(f"cannot bootstrap {source.uri(path)}"), source.open_input(path) as file:
        stored = (orc.read_footer(file) if path.endswith(".orc") else parquet.read_footer(file)).schema
    stored_columns = as_nullable(to_table_types(remove_meta_columns(stored)))
    from_path = [field.name for field in partition_fields(config) if field.name not in stored_columns.names]
    return pa.schema([*stored_columns, *((name, pa.string()) for name in from_path)])


def _check_columns(schema: pa.Schema, spec: KeySpec, merging: MergeSettings) -> None:
    for what, names in (("record key", spec.record_fields), ("ordering", merging.ordering_fields)):
        for name in names:
            if top_column(name, schema.names) not in schema.names:
                raise SchemaMismatchError(
                    f"the {what} field {name!r} is not a column of the source: {', '.join(schema.names)}"
                )
