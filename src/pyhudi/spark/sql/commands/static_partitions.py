"""Values of partition columns in statements: ``PARTITION (column = value)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegralType, StructType, TimestampNTZType, TimestampType

from pyhudi.config import options
from pyhudi.errors import QueryError, SchemaMismatchError
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, KeySpec
from pyhudi.keygen.partition_value_extractor import partition_fields, partition_texts
from pyhudi.schema.meta_columns import remove_meta_columns
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.column_names import quoted
from pyhudi.spark.keys.key_generator import jvm_zone, partition_path_of
from pyhudi.spark.keys.value_formatter import sql_timestamp_text
from pyhudi.spark.session import spark_sql
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.spark_types import spark_schema
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.spark_statements import type_text
from pyhudi.spark.sql.sql_table import SqlTable
from pyhudi.sql.statements import PartitionSpec
from pyhudi.table.config.key_generator_type import PartitionKind
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.sql_timestamps import has_sql_timestamps

_DEFAULT = frozenset({f"'{DEFAULT_PARTITION}'", f'"{DEFAULT_PARTITION}"'})
"""Literals of the value that paths have for null."""


@dataclass(frozen=True, slots=True)
class StaticValues:
    """Values of partition columns, evaluated once: they need not be literals.

    Attributes:
        row: The values, with the types of the columns.
        path: The partition path; None if it is not needed.
    """

    row: Row
    path: str | None

    def column(self, name: str, text: str, data_type: DataType) -> Column:
        """Return a value as a column of the rows. Times are taken from their SQL ``text``, because Spark returns them
        in the time zone of this process, where some are ambiguous."""
        if isinstance(data_type, TimestampType | TimestampNTZType):
            return F.expr(cast_text(text, data_type))
        value = self.row[name]
        # as text, because PySpark converts dates by way of another calendar
        return F.lit(value.isoformat() if isinstance(value, date) else value).cast(data_type)


def partition_values(
    spark: SparkSession, spec: PartitionSpec, schema: StructType, keys: KeySpec | None = None
) -> StaticValues:
    """Evaluate the values of partition columns, with the types of the columns, in one query.

    Args:
        spark: The session.
        spec: SQL text of each value; all are given.
        schema: The columns of the table.
        keys: Specification of the table's keys, by which the partition path is made; None: it is not needed.

    Raises:
        SchemaMismatchError: A value is not of the type of its column. A cast would make it null, or another value, and
            so name another partition.
    """
    values = {name: str(value) for name, value in spec.items()}
    kinds = {name: schema[name].dataType for name in values}
    texts = [f"{cast_text(value, kinds[name])} AS {quoted([name])}" for name, value in values.items()]
    fits = [
        f"{_fits_condition(value, kinds[name])} AS _fits_{number}"
        for number, (name, value) in enumerate(values.items())
    ]
    query = spark_sql(spark, f"SELECT {', '.join([*texts, *fits])}")
    if keys is not None:
        query = query.select("*", partition_path_of(query, keys).alias("_path"))
    row = query.first()
    assert row is not None
    for (name, value), fit in zip(values.items(), row[len(values) :], strict=False):
        if not fit:
            raise SchemaMismatchError(
                f"the value {value} of the partition column {name!r} is no {kinds[name].simpleString()}; "
                "use a value of that type"
            )
    return StaticValues(Row(*values)(*row[: len(values)]), None if keys is None else str(row[-1]))


def matching_partitions(
    spark: SparkSession, table: CatalogTable, spec: PartitionSpec, values: StaticValues | None = None
) -> list[str]:
    """Return the paths of the partitions with some values, or of all without values. ``values`` are those of ``spec``,
    if they have been evaluated. The text ``'__HIVE_DEFAULT_PARTITION__'``, as in paths, is null, whatever the type of
    the column.

    Raises:
        QueryError: The table is not partitioned by such a column, a value is missing, or paths do not have it.
        SchemaMismatchError: A value is not of the type of its column.
    """
    handle = SqlTable.from_catalog(spark, table)
    fields = [field.name for field in handle.config.partition_fields]
    if spec and not fields:
        raise QueryError(f"{table.sql} is not partitioned; leave PARTITION out")
    sensitive = is_case_sensitive(spark)
    spec = {
        resolve_name(name, fields, case_sensitive=sensitive) or name: "NULL" if value in _DEFAULT else value
        for name, value in spec.items()
    }
    for name, value in spec.items():
        if name not in fields or value is None:
            raise QueryError(f"{table.sql} is partitioned by ({', '.join(fields)}): use values of these, not {name!r}")
    partitions = handle.inspect.partitions()
    if not spec:
        return list(partitions["partition"].to_pylist())
    evaluated = values or partition_values(spark, spec, spark_schema(remove_meta_columns(handle.load_schema())))
    if not partitions.num_rows:
        return []
    slashed = _have_slash_dates(handle)
    paths = partitions["partition"].to_pylist()
    client = handle.client
    sql_timestamps = has_sql_timestamps(client.storage, client.config)
    matches = pa.chunked_array([pa.repeat(pa.scalar(True), partitions.num_rows)])
    for name, value in evaluated.row.asDict().items():
        if value is None:
            same = _are_default(handle.config, paths, fields.index(name))
        elif sql_timestamps and isinstance(value, datetime):
            text = _sql_timestamp(spark, str(spec[name]))
            same = _have_text(handle.config, paths, fields.index(name), text)
        else:
            stored, wanted = partitions[name], _scalar(value, partitions[name].type, name)
            if slashed and pa.types.is_string(stored.type):  # the path does not tell a dash from a slash
                stored, wanted = (pc.replace_substring(texts, "-", "/") for texts in (stored, wanted))
            same = pc.fill_null(pc.equal(stored, wanted), False)
        matches = pc.and_(matches, same)
    return list(partitions.filter(matches)["partition"].to_pylist())


def _have_slash_dates(table: SqlTable) -> bool:
    """Return True if the dashes of partition values are slashes in the paths of a table."""
    config = table.config
    kinds = [field.kind for field in partition_fields(config)]
    option = options.SLASH_SEPARATED_DATE_PARTITIONING  # of tables that do not store it
    return kinds == [PartitionKind.SIMPLE] and (config.slash_dates or table.opts.get_typed(option))


def _are_default(config: TableConfig, paths: Sequence[str], field: int) -> pa.BooleanArray:
    """Return a mask of the paths with the default value of a field, which represents null. Other paths may lack the
    value."""
    texts = (partition_texts(config, path) for path in paths)
    return pa.array([values is not None and values[field] is None for values in texts], pa.bool_())


def _decoded(time: str | None) -> str | None:
    return time and time.replace("%3A", ":")


def _have_text(config: TableConfig, paths: Sequence[str], field: int, text: str | None) -> pa.BooleanArray:
    """Return a mask of the paths with a text of a field; None: no path has it."""
    texts = (partition_texts(config, path) for path in paths)  # decoded only where all paths are encoded
    same = (values is not None and _decoded(values[field]) == _decoded(text) for values in texts)
    return pa.array([text is not None and one for one in same], pa.bool_())


def _sql_timestamp(spark: SparkSession, value: str) -> str | None:
    """Return the text of a timestamp in paths that Apache Hudi's SQL has written. They tell whole seconds: None for a
    value with a fraction, of which there is no partition of its own."""
    time = F.expr(cast_text(value, TimestampType()))
    text = F.when(F.date_trunc("second", time) == time, sql_timestamp_text(time, jvm_zone(spark)))
    row = spark.range(1).select(text).first()
    assert row is not None
    return None if row[0] is None else str(row[0])


def _scalar(value: Any, data_type: pa.DataType, name: str) -> pa.Scalar:
    if isinstance(value, datetime) and pa.types.is_timestamp(data_type) and data_type.tz is not None:
        value = value.astimezone(UTC)  # Spark returns times without a zone, in that of the process
    if pa.types.is_string(data_type) and not isinstance(value, str):
        raise QueryError(
            f"the partition paths of the column {name!r} are texts that the key generator derives from its values; "
            "drop such partitions by CALL drop_partition with their paths"
        )
    return pa.scalar(value, data_type)


def cast_text(value: str | None, data_type: DataType) -> str:
    """Return SQL text that casts a value to the type of its column; null if that fails, whatever the session's setting
    of ANSI mode."""
    return f"TRY_CAST({value} AS {type_text(data_type)})"


def _fits_condition(value: str, data_type: DataType) -> str:
    """SQL condition: the cast of a value is neither a null that the value is not, nor an integer that has wrapped."""
    cast = cast_text(value, data_type)
    fits = f"(({value}) IS NULL OR {cast} IS NOT NULL)"
    if isinstance(data_type, IntegralType):
        exact = f"TRY_CAST({cast} AS DECIMAL(38, 18)) <=> TRY_CAST({value} AS DECIMAL(38, 18))"
        return f"({fits} AND {exact})"
    return fits
