"""SHOW and DESCRIBE of Hudi tables, with Spark's and Apache Hudi's columns."""

from __future__ import annotations

import json
import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.errors import QueryError
from pyhudi.metadata.indexes.index_definitions import load_definitions
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.spark.column_names import quoted
from pyhudi.spark.session import spark_sql
from pyhudi.spark.sql.catalog import SESSION_CATALOG, CatalogTable
from pyhudi.spark.sql.commands.static_partitions import matching_partitions
from pyhudi.spark.sql.spark_statements import column_type_text, comment_of, result_frame
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import Describe, PartitionSpec, Show
from pyhudi.sql.string_literals import string_literal
from pyhudi.sql.table_properties import shown_properties
from pyhudi.table.config.table_config import TableConfig

_WHOLE_TABLE = ("column_stats", "partition_stats", "bloom_filters", "record_index")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DESCRIBED = "col_name string, data_type string, comment string"
_SHOWN_EXTENDED = "namespace string, tableName string, isTemporary boolean, information string"


def show(spark: SparkSession, table: CatalogTable, statement: Show) -> DataFrame:
    """Run a SHOW."""
    match statement.what:
        case "PARTITIONS":
            paths = sorted(path for path in matching_partitions(spark, table, statement.partition) if path)
            return result_frame(spark, "partition string", [(path,) for path in paths])
        case "TBLPROPERTIES":
            return _properties(spark, table, statement.key)
        case "INDEXES":
            return result_frame(spark, "index_name string, index_type string, col_name string", _indexes(spark, table))
        case _:
            return result_frame(spark, "createtab_stmt string", [(create_statement(spark, table),)])


def _properties(spark: SparkSession, table: CatalogTable, key: str | None) -> DataFrame:
    properties = shown_properties(
        table.properties, SqlTable.from_catalog(spark, table).config.table_type, table.location
    )
    if key is not None:
        missing = f"Table {SESSION_CATALOG}.{'.'.join(table.name)} does not have property: {key}"
        properties = {key: properties.get(key, missing)}
    return result_frame(spark, "key string, value string", properties.items())


def _indexes(spark: SparkSession, table: CatalogTable) -> list[tuple[str, str, str]]:
    client = SqlTable.from_catalog(spark, table).client
    config, definitions = client.config, load_definitions(client.storage, client.config)
    rows = [(name, name, "") for name in config.metadata_partitions if name in _WHOLE_TABLE]
    for name, definition in definitions.items():
        if name not in _WHOLE_TABLE:
            kind = str(definition.get("indexType", ""))
            rows.append((name, kind, ",".join(definition.get("sourceFields") or ())))
    return sorted(rows)


def create_statement(spark: SparkSession, table: CatalogTable) -> str:
    """Return the CREATE TABLE statement of a table."""
    handle = SqlTable.from_catalog(spark, table)
    config = handle.config
    timestamp = _timestamp_word(spark)
    columns = [
        f"  {_bare_name(f.name)} {column_type_text(f, timestamp)}"
        + (f" COMMENT {string_literal(comment)}" if (comment := comment_of(f)) else "")
        for f in _all_columns(spark, table).fields
        if not is_meta_column(f.name)
    ]
    properties = shown_properties(table.properties, config.table_type, table.location)
    properties.pop("path")
    partitions = ", ".join(_bare_name(field.name) for field in config.partition_fields)
    comment = None if table.is_path else spark.catalog.getTable(table.sql).description
    lines = [
        f"CREATE TABLE spark_catalog.{'.'.join(map(_bare_name, table.name))} (",
        ",\n".join(columns) + ")",
        "USING hudi",
        *([f"PARTITIONED BY ({partitions})"] if partitions else []),
        *([f"COMMENT {string_literal(comment)}"] if comment else []),
        *([] if table.managed else [f"LOCATION {string_literal(table.location)}"]),
        "TBLPROPERTIES (",
        ",\n".join(f"  {string_literal(k)} = {string_literal(v)}" for k, v in properties.items()) + ")",
    ]
    return "\n".join(lines) + "\n"


def _timestamp_word(spark: SparkSession) -> str:
    """Return the usual name of timestamps with time zone in the session's CREATE TABLE."""
    key = "spark.sql.timestampType"
    return "TIMESTAMP_LTZ" if str(spark.conf.get(key, "TIMESTAMP_LTZ")).upper() == "TIMESTAMP_NTZ" else "TIMESTAMP"


def _bare_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else quoted([name])


def _all_columns(spark: SparkSession, table: CatalogTable) -> StructType:
    """Return the meta columns, then the table's own columns, partition columns last."""
    return SqlTable.from_catalog(spark, table).load_sql_schema()


def _described_as_json(spark: SparkSession, table: CatalogTable) -> DataFrame:
    """Return Spark's description of the entry of a table, without what makes it a view."""
    described = spark_sql(spark, f"DESCRIBE TABLE EXTENDED {table.sql} AS JSON")
    if table.foreign:
        return described
    entry = {key: value for key, value in json.loads(described.collect()[0][0]).items() if not key.startswith("view_")}
    config = SqlTable.from_catalog(spark, table).config
    entry |= {
        "type": table.catalog_type,
        "provider": "hudi",
        "location": table.location,
        "table_properties": shown_properties(table.properties, config.table_type, table.location),
    }
    if config.partition_fields:
        entry["partition_columns"] = [field.name for field in config.partition_fields]
    return result_frame(spark, described.schema, [(json.dumps(entry, separators=(",", ":")),)])


def _partition_path(spark: SparkSession, table: CatalogTable, partition: PartitionSpec) -> str:
    """Return the path of one partition.

    Raises:
        QueryError: There is no such partition, or several have the values.
    """
    paths = matching_partitions(spark, table, partition)
    if len(paths) != 1:
        values = ", ".join(f"{name} = {value}" for name, value in partition.items())
        raise QueryError(
            f"{table.sql} has {len(paths) or 'no'} partition{'s' * bool(paths)} with {values}; name one of them"
        )
    return paths[0]


def _partition_details(table: CatalogTable, path: str) -> dict[str, str]:
    return {"Partition Values": f"[{', '.join(path.split('/'))}]", "Location": f"{table.location}/{path}"}


def show_partition(spark: SparkSession, table: CatalogTable, partition: PartitionSpec) -> DataFrame:
    """Run SHOW TABLE EXTENDED of one partition.

    Raises:
        QueryError: There is no such partition, or several have the values.
    """
    details = _partition_details(table, _partition_path(spark, table, partition))
    information = "".join(f"{key}: {value}\n" for key, value in details.items())
    return result_frame(spark, _SHOWN_EXTENDED, [(*map(str.lower, table.name), False, information)])


def describe(spark: SparkSession, table: CatalogTable, statement: Describe) -> DataFrame:
    """Run DESCRIBE of a table, or of a column or partition of it.

    Raises:
        QueryError: There is no such column or partition.
    """
    if statement.as_json:
        return _described_as_json(spark, table)
    path = _partition_path(spark, table, statement.partition) if statement.partition else None
    schema = _all_columns(spark, table)
    if statement.column is not None:
        return _described_column(spark, table, schema, statement.column)
    rows: list[tuple[str, str, str | None]] = [
        (field.name, field.dataType.simpleString(), comment_of(field)) for field in schema.fields
    ]
    config = SqlTable.from_catalog(spark, table).config
    last = [field.name for field in config.partition_fields]
    if last:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [
            (field.name, field.dataType.simpleString(), comment_of(field))
            for field in schema.fields
            if field.name in last
        ]
    if statement.extended and path is not None:
        rows += [
            ("", "", ""),
            ("# Detailed Partition Information", "", ""),
            ("Database", table.name[0], ""),
            ("Table", table.name[1], ""),
            *((key, value, "") for key, value in _partition_details(table, path).items()),
        ]
    elif statement.extended:
        rows += _table_details(table, config)
    return result_frame(spark, _DESCRIBED, rows)


def _described_column(spark: SparkSession, table: CatalogTable, schema: StructType, column: str) -> DataFrame:
    """Describe a column, which may be qualified.

    Raises:
        QueryError: There is no such column.
    """
    name = column.lower()
    bare = name.removeprefix(f"{table.name[0].lower()}.").removeprefix(f"{table.name[1].lower()}.")
    fields = {field.name.lower(): field for field in schema.fields}
    field = fields.get(name) or fields.get(bare)
    if field is None:
        raise QueryError(f"{table.sql} has no column {column!r}; it has {', '.join(schema.names)}")
    described = {"col_name": field.name, "data_type": field.dataType.simpleString(), "comment": comment_of(field)}
    shown = [(key, "NULL" if value is None else value) for key, value in described.items()]
    return result_frame(spark, "info_name string, info_value string", shown)


def _table_details(table: CatalogTable, config: TableConfig) -> list[tuple[str, str, str]]:
    """Return the rows of DESCRIBE EXTENDED about the whole table."""
    properties = shown_properties(table.properties, config.table_type, table.location)
    details = {
        "Catalog": SESSION_CATALOG,
        "Database": table.name[0],
        "Table": table.name[1],
        "Type": table.catalog_type,
        "Provider": "hudi",
        "Table Properties": "[" + ", ".join(f"{k}={v}" for k, v in properties.items()) + "]",
        "Location": table.location,
    }
    return [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        *((key, value, "") for key, value in details.items()),
    ]
