"""Procedure that creates a table from Parquet files by writing their rows, or upserts them into a table."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import NumericType, StructType

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.errors import QueryError, SchemaMismatchError, TableExistsError
from pyhudi.schema.converters.arrow_avro import from_avro
from pyhudi.spark.read.load_table import session_settings
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.sql.procedures.arguments import Arguments, Procedure, Rows
from pyhudi.spark.sql.session_config import session_options
from pyhudi.spark.write.dataframe_writer import write
from pyhudi.storage import open_storage
from pyhudi.table.config.properties_file import PATH
from pyhudi.table.config.properties_text import parse_properties

_COMMANDS = {
    "insert": (Operation.INSERT, "hoodie.insert.shuffle.parallelism"),
    "upsert": (Operation.UPSERT, "hoodie.upsert.shuffle.parallelism"),
    "bulkinsert": (Operation.BULK_INSERT, "hoodie.bulkinsert.shuffle.parallelism"),
}
"""Operation of each command, and the option of its number of tasks."""
_DATE_PATHS = {
    options.KEYGENERATOR_CLASS.key: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
"""Partition paths of numbers, which are seconds since 1970."""


def hdfs_parquet_import(spark: SparkSession, arguments: Arguments) -> Rows:
    """Write the rows of the Parquet files at ``src_path``, with the columns of an Avro schema (``schema_file_path``),
    to the table at ``target_path``; returns 0. Only the command ``upsert`` accepts a table that exists. The values of
    a ``partition_key`` with numbers are seconds since 1970, and become paths of days, as in Apache Hudi.

    Raises:
        QueryError: The command is unknown.
        SchemaMismatchError: The files lack a column.
        TableExistsError: There is a table at ``target_path``.
    """
    command = str(arguments.text("command")).lower()
    if command not in _COMMANDS:
        raise QueryError(f"command is one of {', '.join(_COMMANDS)}, not {command!r}")
    operation, parallelism = _COMMANDS[command]
    target, partition = str(arguments.text("target_path")), str(arguments.text("partition_key"))
    schema = spark_schema(from_avro(arguments.file(spark, "schema_file_path").decode()))
    rows = _source(spark, str(arguments.text("src_path")), schema)
    write_options = {
        **session_options(spark),
        **_properties(spark, arguments),
        options.TABLE_NAME.key: str(arguments.text("table")),
        options.TABLE_TYPE.key: str(arguments.text("table_type")),
        options.OPERATION.key: operation.value,
        options.RECORDKEY_FIELD.key: str(arguments.text("row_key")),
        options.PARTITIONPATH_FIELD.key: partition,
        options.NUM_RETRIES_ON_CONFLICT.key: str(arguments.number("retry") or 0),
    }
    if partition in schema.names and isinstance(schema[partition].dataType, NumericType):
        write_options |= _DATE_PATHS
    tasks = arguments.number("parallelism") or 1
    if tasks > 1:  # The default of the signature is one, and means that Spark chooses.
        write_options[parallelism] = str(tasks)
    if operation is not Operation.UPSERT:
        _check_absent(spark, target)
    write(rows, target, write_options)
    return [(0,)]


def _source(spark: SparkSession, path: str, schema: StructType) -> DataFrame:
    """Return the rows of Parquet files with the columns of a schema."""
    available = spark.read.parquet(path).columns
    missing = [name for name in schema.names if name not in available]
    if missing:
        raise SchemaMismatchError(
            f"the files at {path!r} have no column {missing[0]!r} of the schema; their columns: {', '.join(available)}"
        )
    return spark.read.schema(schema).parquet(path)


def _properties(spark: SparkSession, arguments: Arguments) -> dict[str, str]:
    """Return the options of the file ``props_file_path``, if it is given."""
    return parse_properties(arguments.file(spark, "props_file_path")) if arguments.text("props_file_path") else {}


def _check_absent(spark: SparkSession, target: str) -> None:
    if open_storage(target, Options.parse(session_settings(spark, target))).exists(PATH):
        raise TableExistsError(
            f"there is a Hudi table at {target!r} already; import into a new path, or with command => 'upsert'"
        )


PROCEDURES: dict[str, Procedure] = {"hdfs_parquet_import": hdfs_parquet_import}
