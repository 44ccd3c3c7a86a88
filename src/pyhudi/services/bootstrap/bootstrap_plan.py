"""The plan of a bootstrap: its source, the columns of the table, and what is made of which files."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, Operation
from pyhudi.errors import ConfigError, SchemaMismatchError, TableExistsError, UnsupportedTableError
from pyhudi.format.base_file import orc, parquet
from pyhudi.format.corruption import as_corruption
from pyhudi.keygen import KeySpec, partition_fields
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.table_types import as_nullable, table_schema
from pyhudi.services.bootstrap.source_listing import check_input_provider, list_source, select_mode
from pyhudi.storage import Storage, join_path, open_storage
from pyhudi.table.bootstrap.bootstrap_index import METADATA_BOOTSTRAP
from pyhudi.table.config.merge_settings import MergeSettings, with_delete_marker
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.write.write_checks import check_writable


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """A bootstrap that has passed every check that needs no data of its files.

    ``source`` is the folder that is bootstrapped, ``metadata_only`` and ``full`` its files
    (:data:`pyhudi.services.bootstrap.source_listing.LISTED_SCHEMA`) by what is made of them. ``schema`` are the table's
    columns; ``all_columns``: they come from a file of the source, and no other may have more.
    """

    storage: Storage
    config: TableConfig
    merging: MergeSettings
    opts: Options
    spec: KeySpec
    source: Storage
    source_path: str
    schema: pa.Schema
    all_columns: bool
    metadata_only: pa.Table
    full: pa.Table

    @classmethod
    def of(cls, storage: Storage, given: Options, columns: pa.Schema | None = None) -> BootstrapPlan:
        """Plan the bootstrap that options ask for, of a table that need not exist yet.

        Args:
            storage: Where the table is to be.
            given: Options of the write.
            columns: The table's own columns; those of the source's first file if not given.

        Raises:
            ConfigError: options are missing, or do not fit the source.
            SchemaMismatchError: key or ordering columns are not in the source.
            UnsupportedTableError: the source cannot be bootstrapped in this way.
        """
        base_path = given.get_typed(options.BOOTSTRAP_BASE_PATH)
        if not base_path:
            raise ConfigError(f"a bootstrap needs the folder of its source: set {options.BOOTSTRAP_BASE_PATH.key}")
        opts = Options.parse({**given, options.OPERATION.key: "bootstrap"})
        config = TableConfig.for_new_table(opts)
        source = open_storage(base_path, opts)
        _check_places(storage, source)
        _check_options(config, opts)
        spec = KeySpec.from_config(config, opts)
        if spec.auto_keys:
            raise ConfigError(f"a bootstrap needs a record key: set {options.RECORDKEY_FIELD.key}")
        listed = list_source(source, config, opts)
        metadata_only, full = select_mode(listed, opts)
        check_input_provider(opts)
        if metadata_only.num_rows:
            _check_metadata_only(config, opts)
        schema = _first_columns(source, listed, config) if columns is None else as_nullable(table_schema(columns))
        opts = config.validate_against(opts)
        merging = with_delete_marker(config.merging_for(opts.get_typed(options.PAYLOAD_CLASS)), opts)
        check_writable(config, merging, Operation.BULK_INSERT, opts)
        _check_columns(schema, spec, merging)
        return cls(
            storage, config, merging, opts, spec, source, base_path, schema, columns is None, metadata_only, full
        )


def remaining(plan: BootstrapPlan, client: TableMetaClient) -> BootstrapPlan:
    """What is left to do of the plan in a table that exists: all of it, or what a bootstrap that was cut off has not
    done.

    Raises:
        TableExistsError: the table has other writes, or is finished.
        ConfigError: it is the table of another bootstrap.
    """
    timeline = client.active_timeline().timeline
    done = {instant.requested for instant in timeline.completed() if instant.is_write}
    known = client.config.properties.get(options.BOOTSTRAP_BASE_PATH.key)
    if known is not None and known != plan.source_path:
        raise ConfigError(
            f"the table at {plan.storage.uri()} is bootstrapped over {known}, not over {plan.source_path}; choose "
            "another path"
        )
    left = plan.full if METADATA_BOOTSTRAP in done else plan.metadata_only
    if not done and not _is_archived(client):
        return plan
    if done == {METADATA_BOOTSTRAP} and known is not None and left.num_rows:
        return replace(plan, metadata_only=plan.metadata_only.slice(0, 0))
    raise TableExistsError(
        f"the table at {plan.storage.uri()} has been written to; a bootstrap needs a new one: choose another path, or "
        "delete the table"
    )


def _is_archived(client: TableMetaClient) -> bool:
    return bool(client.storage.list(client.config.layout.history).num_rows)


def _check_places(storage: Storage, source: Storage) -> None:
    inside = f"{source.root}/"
    if storage.root == source.root or f"{storage.root}/".startswith(inside) or inside.startswith(f"{storage.root}/"):
        raise ConfigError(
            f"the table at {storage.uri()} and the files of {source.uri()} cannot be in each other's folder; choose "
            "another path for the table"
        )


def _check_options(config: TableConfig, opts: Options) -> None:
    if opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET:
        raise UnsupportedTableError(
            f"{options.INDEX_TYPE.key}=BUCKET: the rows of files that are there are in no buckets; choose another index"
        )
    if config.drop_partition_columns:
        raise UnsupportedTableError(
            f"{options.DROP_PARTITION_COLUMNS.key}=true does not go with a bootstrap, whose source has what it "
            "has; leave the option out"
        )


def _check_metadata_only(config: TableConfig, opts: Options) -> None:
    if not config.populate_meta_fields:
        raise ConfigError(
            f"{options.POPULATE_META_FIELDS.key}=false: a metadata-only bootstrap writes nothing but meta columns; "
            f"take FullRecordBootstrapModeSelector in {options.BOOTSTRAP_MODE_SELECTOR.key}"
        )
    if not opts.get_typed(options.BOOTSTRAP_INDEX_ENABLE):
        raise ConfigError(
            f"{options.BOOTSTRAP_INDEX_ENABLE.key}=false: without its index nobody finds the rows of a metadata-only "
            "bootstrap; leave the option out"
        )


def _first_columns(source: Storage, listed: pa.Table, config: TableConfig) -> pa.Schema:
    """The columns of the first file, and texts for partition columns that only folders tell."""
    path = join_path(listed["source_partition"][0].as_py(), listed["name"][0].as_py())
    with as_corruption(f"{source.uri(path)} cannot be bootstrapped"), source.open_input(path) as file:
        stored = (orc.read_footer(file) if path.endswith(".orc") else parquet.read_footer(file)).schema
    own = as_nullable(table_schema(remove_meta_columns(stored)))
    told = [field.name for field in partition_fields(config) if field.name not in own.names]
    return pa.schema([*own, *((name, pa.string()) for name in told)])


def _check_columns(schema: pa.Schema, spec: KeySpec, merging: MergeSettings) -> None:
    for what, names in (("record key", spec.record_fields), ("ordering", merging.ordering_fields)):
        for name in names:
            if name not in schema.names and name.partition(".")[0] not in schema.names:
                raise SchemaMismatchError(
                    f"the {what} field {name!r} is not among the columns of the source: {', '.join(schema.names)}"
                )
