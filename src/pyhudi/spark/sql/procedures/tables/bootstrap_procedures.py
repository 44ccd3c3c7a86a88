"""Procedures that create a table from existing files, and show the bootstrap mapping."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.read.inspection.bootstrap_inspection import bootstrap_mapping, bootstrap_partitions
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.services.bootstrap.bootstrap_plan import BootstrapPlan
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.write.operations.bootstrap import bootstrap
from pyhudi.spark.write.sync_after_write import check_sync_options, sync_after_write
from pyhudi.storage import open_storage
from pyhudi.table.config.properties_file import PATH
from pyhudi.transaction.table_overwrite.table_removal import remove_table

_OPTIONS = {
    "table_type": options.TABLE_TYPE.key,
    "bootstrap_path": options.BOOTSTRAP_BASE_PATH.key,
    "rowKey_field": options.RECORDKEY_FIELD.key,
    "base_file_format": options.BASE_FILE_FORMAT.key,
    "partition_path_field": options.PARTITIONPATH_FIELD.key,
    "selector_class": options.BOOTSTRAP_MODE_SELECTOR.key,
    "key_generator_class": options.KEYGENERATOR_CLASS.key,
    "full_bootstrap_input_provider": options.BOOTSTRAP_INPUT_PROVIDER.key,
    "payload_class": options.PAYLOAD_CLASS.key,
    "parallelism": options.BOOTSTRAP_PARALLELISM.key,
}
_INDEX = "HFileBootstrapIndex"
_DEFAULT_KEYGEN = "org.apache.hudi.keygen.SimpleKeyGenerator"
_REFUSED = {
    "schema_provider_class": "a schema provider is Java code, which cannot run here; files tell the columns",
    "props_file_path": "no file of options is read; give them by options => 'key=value,…' or SET",
}
_SORTED_BY = ("partition", "file_id", "source_base_path", "source_partition", "source_file")


def run_bootstrap(spark: SparkSession, arguments: Arguments) -> Rows:
    """Create the table at ``base_path`` from the files of ``bootstrap_path``; returns 0. With ``bootstrap_overwrite`` a
    existing table is deleted, after all checks that do not need the data."""
    for name, why in _REFUSED.items():
        if arguments.values[name]:
            raise UnsupportedTableError(f"{name} => {arguments.values[name]}: {why}")
    index = arguments.text("bootstrap_index_class")
    if index and index.rpartition(".")[2] != _INDEX:
        raise UnsupportedTableError(f"bootstrap_index_class => {index} is Java code, which cannot run here")
    path = str(arguments.text("base_path"))
    bootstrap_options = {
        **session_settings(spark, path),
        **session_options(spark),
        **arguments.pairs("options"),
        options.TABLE_NAME.key: str(arguments.text("table")).rpartition(".")[2],
        **{key: value for key, value in arguments.as_options(_OPTIONS).items() if value},
    }
    if arguments.flag("enable_hive_sync"):
        bootstrap_options[options.HIVE_SYNC_ENABLE.key] = "true"
    if bootstrap_options.get(options.KEYGENERATOR_CLASS.key) == _DEFAULT_KEYGEN:
        del bootstrap_options[options.KEYGENERATOR_CLASS.key]  # who names none has the one that fits the fields
    opts = Options.parse(bootstrap_options)
    check_sync_options(spark, opts)
    storage = open_storage(path, opts)
    refuse_nested_table(storage.root, opts)
    plan = BootstrapPlan.from_options(storage, opts)
    if arguments.flag("bootstrap_overwrite") and plan.target.storage.exists(PATH):
        remove_table(plan.target.storage)
    sync_after_write(spark, storage, opts, bootstrap(spark, plan))
    return [(0,)]


def show_bootstrap_mapping(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the source file of each file group, or of those of a partition or with some ids, if these are given."""
    partition, file_ids = arguments.text("partition_path") or None, arguments.text("file_ids")
    ids = {one.strip() for one in file_ids.split(",")} if file_ids else None
    by = str(arguments.text("sort_by")).lower()
    if by not in _SORTED_BY:
        raise QueryError(f"sort_by is one of {', '.join(_SORTED_BY)}, not {by!r}")
    order = "descending" if arguments.flag("desc") else "ascending"
    mapping = bootstrap_mapping(arguments.client(spark).storage, partition, ids).select(_SORTED_BY)
    rows = [tuple(row.values()) for row in mapping.sort_by([(by, order)]).to_pylist()]
    return arguments.limited(rows)


def show_bootstrap_partitions(spark: SparkSession, arguments: Arguments) -> Rows:
    """Show the partitions that are bootstrapped by metadata only."""
    partitions = bootstrap_partitions(arguments.client(spark).storage)
    return [(partition,) for partition in partitions["partition"].to_pylist()]


PROCEDURES: dict[str, Procedure] = {
    "run_bootstrap": run_bootstrap,
    "show_bootstrap_mapping": show_bootstrap_mapping,
    "show_bootstrap_partitions": show_bootstrap_partitions,
}
