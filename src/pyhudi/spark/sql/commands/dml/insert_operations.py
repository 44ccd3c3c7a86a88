"""Operations of INSERT, by the options of the write and of the session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import DuplicatePolicy, SqlInsertMode, TableType
from pyhudi.config.misspelled_options import SESSION_OVERWRITE_MODE
from pyhudi.sql.statements import PartitionSpec
from pyhudi.table.config.table_config import TableConfig


def overwrite_operation(spark: SparkSession, config: TableConfig, opts: Options, static: PartitionSpec) -> str:
    """Return the operation of INSERT OVERWRITE, by the rules of Apache Hudi: it replaces the partitions that match the
    static values; without static values, the whole table, or in dynamic mode the partitions of the rows."""
    if config.partition_fields and (static or is_dynamic_overwrite(spark, opts)):
        return "insert_overwrite"
    return "insert_overwrite_table"


def is_dynamic_overwrite(spark: SparkSession, opts: Options) -> bool:
    """Return True if INSERT OVERWRITE replaces the partitions of the rows, by the options or the session."""
    mode = opts.get_typed(options.OVERWRITE_MODE) or str(spark.conf.get(SESSION_OVERWRITE_MODE, "static"))
    return mode.upper() == "DYNAMIC" or opts.text(options.OPERATION) == "insert_overwrite"


def insert_into_options(config: TableConfig, opts: Options) -> dict[str, str]:
    """Return the options of INSERT INTO. Settings that release 0.14 deprecated apply if the operation is not set."""
    operation = options.OPERATION.key
    chosen = opts.get_typed(options.SQL_INSERT_INTO_OPERATION)
    if chosen:
        return {operation: options.OPERATION.parse(chosen, opts.spelling(options.SQL_INSERT_INTO_OPERATION))}
    configured = opts.text(options.OPERATION)
    if configured:
        return {operation: configured}
    if opts.get_typed(options.SQL_BULK_INSERT_ENABLE):
        return {operation: "bulk_insert"}
    mode = opts.get_typed(options.SQL_INSERT_MODE) if config.record_keys else None
    if mode is SqlInsertMode.STRICT and config.table_type is TableType.COPY_ON_WRITE:
        return {operation: "insert", options.INSERT_DUP_POLICY.key: str(DuplicatePolicy.FAIL)}
    upserts = mode in (SqlInsertMode.UPSERT, SqlInsertMode.STRICT)
    return {operation: "upsert" if upserts else "insert"}
