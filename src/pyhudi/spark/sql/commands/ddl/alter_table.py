"""ALTER TABLE … SET and UNSET TBLPROPERTIES, and RENAME TO."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.errors import QueryError, TableExistsError
from pyhudi.spark.column_names import quoted
from pyhudi.spark.sql.catalog import CatalogTable, full_name
from pyhudi.spark.sql.catalog_registration import rename, set_properties, update_columns
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import RenameTable, SetProperties
from pyhudi.sql.string_literals import string_literal
from pyhudi.sql.table_properties import refuse_misspelled_properties, table_options
from pyhudi.storage import open_storage
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.properties_file import PATH, update_properties
from pyhudi.transaction.locks.lock_factory import check_lock_provider


def alter_properties(spark: SparkSession, table: CatalogTable, statement: SetProperties) -> None:
    """Run ALTER TABLE … SET or UNSET TBLPROPERTIES: they are options of later writes by name.

    Raises:
        TableConfigConflictError: The property contradicts the table.
        ConfigError: A property is misspelt, or names a lock provider that is not supported.
        AnalysisException: A property to remove is absent, without IF EXISTS; Spark 4 takes that as done.
    """
    refuse_misspelled_properties(statement.changed)
    changed_options = Options.parse(table_options(statement.changed))
    client = SqlTable.from_catalog(spark, table).client
    client.config.validate_against(changed_options)
    check_lock_provider(changed_options)
    set_properties(spark, table, statement.changed, statement.remove, if_exists=statement.if_exists)


def rename_table(spark: SparkSession, table: CatalogTable, statement: RenameTable) -> None:
    """Run ALTER TABLE … RENAME TO; the files stay where they are. A failure restores the old name.

    Raises:
        TableExistsError: The name is in use.
        QueryError: The new name is in another database.
    """
    to = full_name(spark, statement.to if len(statement.to) > 1 else (table.name[0], *statement.to))
    if to[0].lower() != table.name[0].lower():
        raise QueryError(
            f"{table.sql} cannot be renamed to {quoted(to)}, because a table stays in its database; use CREATE TABLE "
            f"{quoted(to)} USING hudi LOCATION {string_literal(table.location)} to give it another name there"
        )
    if spark.catalog.tableExists(quoted(to)):
        raise TableExistsError(f"the table or view {quoted(to)} already exists; choose another name")
    before = SqlTable.from_catalog(spark, table).config.name
    renamed = rename(spark, table, to)  # Spark may refuse the name
    try:
        _set_table_name(spark, renamed, to[1])
        update_columns(spark, renamed, SqlTable.from_catalog(spark, renamed).load_sql_schema())
    except BaseException:
        _set_table_name(spark, rename(spark, renamed, table.name), before)
        raise


def _set_table_name(spark: SparkSession, table: CatalogTable, name: str) -> None:
    """Write the name of a table into its properties and those of its metadata table."""
    client = SqlTable.from_catalog(spark, table).client
    client.config.updated(client.storage, set={options.TABLE_NAME.key: name})
    metadata = open_storage(client.storage.uri(METADATA_FOLDER), client.options)
    if metadata.exists(PATH):  # a metadata table with another name is considered that of another table
        update_properties(metadata, put={options.TABLE_NAME.key: f"{name}_metadata"})
