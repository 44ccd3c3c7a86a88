"""CREATE, ALTER, TRUNCATE and DROP of tables."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, QueryError, SchemaMismatchError, TableExistsError, UnsupportedTableError, warn
from pyhudi.read.query.table_location import refuse_nested_table
from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.table_types import as_nullable, table_schema
from pyhudi.spark.dml.assignments import column_of, column_path
from pyhudi.spark.keys.key_text import quoted
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.sql.catalog import (
    CatalogTable,
    default_location,
    find_table,
    full_name,
    register,
    rename,
    set_properties,
    unregister,
    update_columns,
)
from pyhudi.spark.sql.commands.declared_columns import declared_schema
from pyhudi.spark.sql.commands.dml import own_schema, write_options
from pyhudi.spark.sql.commands.static_partitions import matching_partitions
from pyhudi.spark.sql.passthrough_statements import column_type_text, spark_sql, text_literal
from pyhudi.spark.sql.queries.cached_tables import uncache
from pyhudi.spark.sql.queries.query_rewriting import rewrite_query
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.sql.table_handle import TableHandle
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.sql.statements import (
    AddColumns,
    CreateTable,
    DropPartitions,
    Name,
    RenameTable,
    SetProperties,
    Truncate,
)
from pyhudi.sql.table_properties import (
    refuse_misspelt_properties,
    registered_properties,
    table_options,
    with_columns,
)
from pyhudi.storage import Storage, open_sibling, open_storage, resolved_root
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.properties_file import PATH, update_properties
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.transaction.table_overwrite.created_table_removal import remove_after_failure, remove_table
from pyhudi.transaction.writer_turns import writer_turn
from pyhudi.write.write_checks import check_storable

_CREATE_SCHEMA = options.CREATE_SCHEMA.key
_LEFT_BEHIND = (
    r"^\.hoodie/(\.temp/|\.aux/\.writing/|\.locks/|lock$)|(^|/)\.hoodie_partition_metadata(\.parquet|\.orc)?$"
)
"""Files of a location without a table that are of failed writes and have no rows."""


# --- create ----------------------------------------------------------------------------------------------------------


def create_table(spark: SparkSession, statement: CreateTable) -> None:
    """Run CREATE or REPLACE TABLE. A table that is replaced stays if the new definition is refused.

    Raises:
        TableExistsError: there is one already.
        QueryError: there is nothing to make columns of.
    """
    name = full_name(spark, statement.name)
    if statement.if_not_exists and spark.catalog.tableExists(quoted(name)):
        return  # without waiting for those that write to it
    location = statement.location or default_location(spark, name)
    with creation_turn(spark, location, statement.properties):
        _create_table(spark, name, statement)


def creation_turn(spark: SparkSession, location: str, properties: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a context manager that holds the turn of this thread to create a table, or to write to it
    (`writer_turn`): of threads that create a table of one name, one does, and the others find it.

    Args:
        spark: The session.
        location: Location of the table.
        properties: Its properties in SQL's spelling.
    """
    opts = Options.parse({**session_settings(spark, location), **session_options(spark), **table_options(properties)})
    return writer_turn(open_storage(location, opts), opts)


def _create_table(spark: SparkSession, name: Name, statement: CreateTable) -> None:
    old = None
    if spark.catalog.tableExists(quoted(name)):
        if statement.if_not_exists:
            return
        old = find_table(spark, name)
        if not statement.replace or old is None:
            raise TableExistsError(f"there is a table or view {quoted(name)} already; drop it, or take another name")
        if statement.query is not None:  # evaluated before what it may read is gone
            rows = spark_sql(spark, rewrite_query(spark, statement.query).text)
            replace_table(spark, old, rows, statement)
            return
    if statement.like is not None:
        statement = _like(spark, statement)
    table = _defined(spark, name, statement, old)
    location = table.location
    _refuse_overlap(old, _storage(spark, table))
    if TableHandle.exists(spark, location, table.options) and not _is_at(old, _storage(spark, table)):
        if statement.query is not None:
            raise _overwrites(location)
        if table.managed:
            _refuse_table_of_others(TableHandle.of(spark, table), table)
        _register_existing(spark, table, statement, old)
        return
    rows = None if statement.query is None else spark_sql(spark, rewrite_query(spark, statement.query).text)
    create_new(spark, table, statement, rows, replaced=old)


def _refuse_table_of_others(there: TableHandle, table: CatalogTable) -> None:
    """Refuse a table as the managed one of a name, unless it was created by this name and has no commits: it may be
    another entry's, as that of a table that was renamed, and DROP TABLE would delete its files.

    Raises:
        TableExistsError: The message has the cure.
    """
    name = there.load_config().name
    if name.lower() == table.name[1].lower() and not there.inspect.commits().num_rows:
        return
    raise TableExistsError(
        f"there is a Hudi table at {table.location!r} already, where {table.sql} belongs; its name is {name!r}. Give "
        "the new table a LOCATION of its own, register the one that is there with LOCATION, or delete it"
    )


def _refuse_overlap(old: CatalogTable | None, storage: Storage) -> None:
    """Refuse a location in the folder of the managed table that is replaced, or around it, because that folder is
    deleted with the table. Its own location is fine, unless links lead there.

    Raises:
        TableExistsError: The message has both locations.
    """
    if old is None or not old.managed:
        return
    root = open_sibling(storage, old.location).root
    new, given = (resolved_root(one).rstrip("/") + "/" for one in (storage.root, root))
    if root != storage.root and (new.startswith(given) or given.startswith(new)):
        raise TableExistsError(
            f"the location {storage.uri()!r} overlaps {old.location!r}, the folder of {old.sql}, which replacing the "
            "table deletes; choose another location, or leave LOCATION out to keep the folder"
        )


def _defined(spark: SparkSession, name: Name, statement: CreateTable, old: CatalogTable | None) -> CatalogTable:
    """Return the table that a statement defines. Without a location it is managed, and where a managed table of the
    name is, or belongs."""
    place = old.location if old is not None and old.managed else default_location(spark, name)
    location = statement.location or place
    return CatalogTable(name, location, dict(statement.properties), managed=statement.location is None)


def _overwrites(location: str) -> TableExistsError:
    return TableExistsError(f"there is a Hudi table at {location!r} already, which AS would overwrite")


def create_new(
    spark: SparkSession,
    table: CatalogTable,
    statement: CreateTable,
    rows: DataFrame | None,
    *,
    replaced: CatalogTable | None = None,
) -> None:
    """Make a table, of columns or of rows, and put it into the catalog.

    Args:
        spark: The session.
        table: The table.
        statement: Its definition.
        rows: Its rows; None: it has the columns of the statement, and no rows.
        replaced: The table that has the name, which is dropped after all checks, and after rows are written.

    Raises:
        QueryError: there are neither columns nor rows.
        TableExistsError: The location has files, or is inside another table.
    """
    schema = _declared(spark, statement) if rows is None else _own(rows.schema)
    if not schema.fields:
        raise QueryError(f"CREATE TABLE {table.sql} has no columns, and there is no Hudi table at {table.location!r}")
    definition = _checked(spark, table, statement, schema)
    table, schema, given = definition.table, definition.schema, definition.given
    opts = Options.parse(given)
    columns = as_nullable(table_schema(from_spark_json(schema.json())))
    avro = to_avro(columns, definition.config.name)
    config = TableConfig(MappingProxyType({**definition.config.properties, _CREATE_SCHEMA: avro}))
    config.check_readable()
    config.check_writable()
    check_storable(columns, config)
    storage = open_storage(table.location, opts)
    refuse_nested_table(storage.root, opts)
    if _is_at(replaced, storage):
        _drop_replaced(spark, replaced)
        replaced = None
    else:
        _refuse_files(storage)
    TableMetaClient.create(storage, config, opts)
    if rows is not None:
        own = rows.select(*(quoted([field.name]) for field in schema.fields))
        try:
            write(own, table.location, {options.OPERATION.key: "bulk_insert", **given}, "append")
        except BaseException:
            remove_after_failure(storage, opts)
            raise
    _drop_replaced(spark, replaced)
    register(spark, table, TableHandle.of(spark, table).load_sql_schema(), statement.comment)


def _drop_replaced(spark: SparkSession, replaced: CatalogTable | None) -> None:
    if replaced is not None:
        drop_table(spark, replaced, purge=replaced.managed)


def _is_at(replaced: CatalogTable | None, storage: Storage) -> bool:
    """Return whether a storage has the files of a managed table, which go with it."""
    return replaced is not None and replaced.managed and open_sibling(storage, replaced.location).root == storage.root


def _refuse_files(storage: Storage) -> None:
    """Refuse a location with files, because a table treats every file below its root as its own, and one with the
    timeline of a table that has lost its properties, which would be that of the new table. What a failed first write
    leaves behind is allowed: a task that outlives the write may create the folders of its markers, and the metadata
    file of its partition, again.

    Raises:
        TableExistsError: The message has one of the files.
    """
    for folder in ("", *storage.list_dirs()):
        paths = storage.list(folder, recursive=bool(folder))["path"]
        files = paths.filter(pc.invert(pc.match_substring_regex(paths, _LEFT_BEHIND)))
        if len(files):
            raise TableExistsError(
                f"cannot create a table at {storage.uri()!r}, which has files: {files[0].as_py()!r}; choose an "
                "empty location, or delete the files. CALL run_bootstrap creates a table over existing files"
            )


def replace_table(spark: SparkSession, old: CatalogTable, rows: DataFrame, statement: CreateTable) -> None:
    """Put a table of rows in place of one that is there, which stays until the rows are written. Where the statement
    gives another location, the table is made there.

    Raises:
        TableExistsError: There is another Hudi table at that location.
    """
    table = _defined(spark, old.name, statement, old)
    storage = _storage(spark, table)
    _refuse_overlap(old, storage)
    if open_sibling(storage, old.location).root != storage.root:
        if TableHandle.exists(spark, table.location, table.options):
            raise _overwrites(table.location)
        create_new(spark, table, statement, rows, replaced=old)
        return
    definition = _checked(spark, table, statement, _own(rows.schema))
    table, schema = definition.table, definition.schema
    given = {**definition.given, options.OPERATION.key: "bulk_insert"}
    write(rows.select(*(quoted([f.name]) for f in schema.fields)), table.location, given, "overwrite")
    register(spark, table, TableHandle.of(spark, table).load_sql_schema(), statement.comment, replace=True)


@dataclass(frozen=True, slots=True)
class _Definition:
    """A table that a statement defines: its columns, partition columns last, and the options that create it."""

    table: CatalogTable
    schema: StructType
    given: Mapping[str, str]
    config: TableConfig


def _checked(spark: SparkSession, table: CatalogTable, statement: CreateTable, schema: StructType) -> _Definition:
    """Return the definition of a table with these columns.

    Raises:
        SchemaMismatchError: The statement, or the session, names columns that the table does not have.
    """
    refuse_misspelt_properties(statement.properties)
    table, statement = _with_own_columns(spark, table, statement, schema)
    given = _creation_options(spark, table, statement)
    schema = _partitions_last(schema, statement.partitioned_by)
    config = TableConfig.for_new_table(Options.parse(given))
    _check_columns(config, schema)
    return _Definition(table, schema, given, config)


def _with_own_columns(
    spark: SparkSession, table: CatalogTable, statement: CreateTable, schema: StructType
) -> tuple[CatalogTable, CreateTable]:
    """Return a table and its definition with the columns of keys, ordering and partitions as its schema spells them.

    Raises:
        SchemaMismatchError: There is no such column.
    """
    sensitive = is_case_sensitive(spark)

    def own(name: str) -> str:
        return ".".join(column_path(name, schema, sensitive))

    partitions = tuple(column_of(name, schema, sensitive) for name in statement.partitioned_by)
    spelled = with_columns(statement.properties, own)
    changed = replace(statement, properties=spelled, partitioned_by=partitions)
    return replace(table, properties=with_columns(table.properties, own)), changed


def _check_columns(config: TableConfig, schema: StructType) -> None:
    """Refuse a definition whose options name columns that the table does not have.

    Raises:
        SchemaMismatchError: The message has one of them.
    """
    for name in (*config.record_keys, *config.ordering_fields, *(field.name for field in config.partition_fields)):
        column_path(name, schema, case_sensitive=True)


def _creation_options(spark: SparkSession, table: CatalogTable, statement: CreateTable) -> dict[str, str]:
    given = {
        **session_settings(spark, table.location),
        options.HIVE_STYLE_PARTITIONING.key: "true",
        **session_options(spark),
        **table_options(statement.properties),
    }
    given.setdefault(options.TABLE_NAME.key, table.name[1])
    given.setdefault(options.DATABASE_NAME.key, table.name[0])
    if statement.partitioned_by:
        given[options.PARTITIONPATH_FIELD.key] = ",".join(statement.partitioned_by)
    return given


def _declared(spark: SparkSession, statement: CreateTable) -> StructType:
    if not statement.columns:
        return StructType([])
    return _own(declared_schema(spark, statement.columns))


def _own(schema: StructType) -> StructType:
    return StructType([field for field in schema.fields if not is_meta_column(field.name)])


def _partitions_last(schema: StructType, partitions: tuple[str, ...]) -> StructType:
    last = [schema[name] for name in partitions]
    return StructType([*(field for field in schema.fields if field not in last), *last])


def _like(spark: SparkSession, statement: CreateTable) -> CreateTable:
    assert statement.like is not None
    source = find_table(spark, statement.like)
    if source is None:
        shape = spark_sql(spark, f"SELECT * FROM {quoted(statement.like)} LIMIT 0").schema
        return replace(statement, columns=_columns_text(_own(shape)), like=None)
    partitions = tuple(field.name for field in TableHandle.of(spark, source).load_config().partition_fields)
    return replace(
        statement,
        columns=_columns_text(own_schema(spark, source)),
        partitioned_by=partitions,
        properties={**source.properties, **statement.properties},
        like=None,
    )


def _columns_text(schema: StructType) -> str:
    return ", ".join(f"{quoted([field.name])} {column_type_text(field)}" for field in schema.fields)


def _register_existing(
    spark: SparkSession, table: CatalogTable, statement: CreateTable, replaced: CatalogTable | None
) -> None:
    """Put a table that is there into the catalog, in place of another one of its name, if any; what the statement says
    of it must be so.

    Raises:
        TableConfigConflictError: a property is another one.
        SchemaMismatchError: a column is not there, or another type.
    """
    handle = TableHandle.of(spark, table)
    config = handle.load_config()
    refuse_misspelt_properties(statement.properties)
    schema = handle.load_sql_schema()
    if schema.fields:
        table, statement = _with_own_columns(spark, table, statement, schema)
    config.validate_against(Options.parse(table_options(statement.properties)))
    known = {field.name.lower(): field for field in schema.fields}
    for field in _declared(spark, statement).fields:
        there = known.get(field.name.lower())
        if there is None or there.dataType != field.dataType:
            kind = "missing" if there is None else f"of type {there.dataType.simpleString()}"
            raise SchemaMismatchError(
                f"the column {field.name} {field.dataType.simpleString()} is {kind} in the Hudi table at "
                f"{table.location!r}; leave the columns out to take the table's"
            )
    fields = tuple(field.name for field in config.partition_fields)
    if statement.partitioned_by and statement.partitioned_by != fields:
        raise ConfigError(f"the Hudi table at {table.location!r} is partitioned by ({', '.join(fields)})")
    if replaced is not None:
        drop_table(spark, replaced, purge=replaced.managed)
    told = registered_properties(config.record_keys, config.ordering_fields, config.table_type)
    register(spark, replace(table, properties={**told, **table.properties}), schema, statement.comment)


def _storage(spark: SparkSession, table: CatalogTable) -> Storage:
    return open_storage(table.location, Options.parse({**session_settings(spark, table.location), **table.options}))


# --- alter -----------------------------------------------------------------------------------------------------------


def alter_properties(spark: SparkSession, table: CatalogTable, statement: SetProperties) -> None:
    """Run ALTER TABLE … SET or UNSET TBLPROPERTIES: they are options of later writes by name.

    Raises:
        TableConfigConflictError: the table itself says otherwise.
    """
    refuse_misspelt_properties(statement.put)
    given = Options.parse(table_options(statement.put))
    TableHandle.of(spark, table).load_config().validate_against(given)
    set_properties(spark, table, statement.put, statement.remove)


def rename_table(spark: SparkSession, table: CatalogTable, statement: RenameTable) -> None:
    """Run ALTER TABLE … RENAME TO; the files stay where they are. Everything has the old name again after a failure.

    Raises:
        TableExistsError: The name is taken.
        QueryError: It is one of another database.
    """
    to = full_name(spark, statement.to if len(statement.to) > 1 else (table.name[0], *statement.to))
    if to[0].lower() != table.name[0].lower():
        raise QueryError(
            f"{table.sql} cannot be renamed to {quoted(to)}, because a table stays in its database; use CREATE TABLE "
            f"{quoted(to)} USING hudi LOCATION {text_literal(table.location)} to give it another name there"
        )
    if spark.catalog.tableExists(quoted(to)):
        raise TableExistsError(f"there is a table or view {quoted(to)} already")
    before = TableHandle.of(spark, table).load_config().name
    renamed = rename(spark, table, to)  # Spark may refuse the name
    try:
        _set_table_name(spark, renamed, to[1])
        update_columns(spark, renamed, TableHandle.of(spark, renamed).load_sql_schema())
    except BaseException:
        _set_table_name(spark, rename(spark, renamed, table.name), before)
        raise


def _set_table_name(spark: SparkSession, table: CatalogTable, name: str) -> None:
    """Write the name of a table into its properties and those of its metadata table."""
    client = TableHandle.of(spark, table).client()
    client.config.updated(client.storage, set={options.TABLE_NAME.key: name})
    metadata = open_storage(client.storage.uri(METADATA_FOLDER), client.options)
    if metadata.exists(PATH):  # a metadata table of another name is taken for another table's
        update_properties(metadata, put={options.TABLE_NAME.key: f"{name}_metadata"})


def add_columns(spark: SparkSession, table: CatalogTable, statement: AddColumns) -> None:
    """Run ALTER TABLE … ADD COLUMNS: a commit without rows that knows the columns.

    Raises:
        UnsupportedTableError: a column is to be not null.
        SchemaMismatchError: there is such a column already.
    """
    added = declared_schema(spark, statement.columns)
    schema = own_schema(spark, table)
    known = {field.name.lower() for field in schema.fields}
    for field in added.fields:
        if field.name.lower() in known:
            raise SchemaMismatchError(f"there is a column {field.name!r} already in {table.sql}")
        if not field.nullable:
            raise UnsupportedTableError(f"the new column {field.name!r} cannot be NOT NULL: stored rows have no value")
    partitions = {field.name for field in TableHandle.of(spark, table).load_config().partition_fields}
    own = [field for field in schema.fields if field.name not in partitions]
    last = [field for field in schema.fields if field.name in partitions]
    wider = StructType([*own, *(StructField(f.name, f.dataType, True, f.metadata) for f in added.fields), *last])
    given = {**write_options(spark, table), options.OPERATION.key: "insert", options.ALLOW_EMPTY_COMMIT.key: "true"}
    write(spark.createDataFrame([], wider), table.location, given, "append")
    update_columns(spark, table, TableHandle.of(spark, table).load_sql_schema())


def drop_partitions(spark: SparkSession, table: CatalogTable, statement: DropPartitions) -> None:
    """Run ALTER TABLE … DROP PARTITION. Warns of partitions that do not exist, unless the statement has IF EXISTS."""
    found = [(spec, matching_partitions(spark, table, spec)) for spec in statement.partitions]
    for spec, paths in found:
        if not paths and not statement.if_exists:
            values = ", ".join(f"{name} = {value}" for name, value in spec.items())
            warn(f"DROP PARTITION: {table.sql} has no partition with {values}")
    _delete_partitions(spark, table, sorted({path for _, paths in found for path in paths}))


def _delete_partitions(spark: SparkSession, table: CatalogTable, paths: list[str]) -> None:
    if paths:
        TableHandle.at(spark, table.location, write_options(spark, table)).delete_partitions(spark, paths)


def truncate(spark: SparkSession, table: CatalogTable, statement: Truncate) -> None:
    """Run TRUNCATE TABLE: the rows go in one commit, the history stays."""
    if statement.partition:
        _delete_partitions(spark, table, matching_partitions(spark, table, statement.partition))
        return
    TableHandle.at(spark, table.location, write_options(spark, table)).delete_all(spark)


# --- drop ------------------------------------------------------------------------------------------------------------


def drop_table(spark: SparkSession, table: CatalogTable, *, purge: bool) -> None:
    """Run DROP TABLE: the files of a managed table go, too, and with PURGE those of any table."""
    unregister(spark, table)
    uncache(spark, table.location)
    if table.managed or purge:
        _forget_files(spark, table)


def _forget_files(spark: SparkSession, table: CatalogTable) -> None:
    remove_table(_storage(spark, table))
