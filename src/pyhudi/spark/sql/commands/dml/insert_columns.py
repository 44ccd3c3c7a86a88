"""Assignment of the columns of inserted rows to the columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StructType

from pyhudi.errors import SchemaMismatchError
from pyhudi.schema.meta_columns import is_meta_column
from pyhudi.schema.name_resolution import resolve_name
from pyhudi.spark.dml.assignments.assignable_types import has_same_names, renamed_fields
from pyhudi.spark.dml.assignments.column_assignments import column_of
from pyhudi.spark.dml.assignments.store_assignment import StoreRules, stored_as
from pyhudi.spark.session_settings import is_case_sensitive
from pyhudi.spark.spark_types import null_columns
from pyhudi.spark.sql.commands.static_partitions import StaticValues


@dataclass(frozen=True, slots=True)
class InsertColumns:
    """Columns of an INSERT.

    Attributes:
        columns: Columns of the table that are inserted; empty: all.
        by_name: Match the columns of the rows by name.
    """

    columns: tuple[str, ...] = ()
    by_name: bool = False

    def aligned(
        self, rows: DataFrame, schema: StructType, static: Mapping[str, str], static_values: StaticValues | None
    ) -> DataFrame:
        """Return the rows with the table's columns.

        Args:
            rows: The rows.
            schema: Columns of the table.
            static: SQL text of the static values of PARTITION by column.
            static_values: These values, evaluated; None if there are none.

        Raises:
            SchemaMismatchError: The number of columns differs, a column is inserted twice, or a type is incompatible
                with that of its column.
        """
        if not self.columns:
            rows = rows.drop(*(name for name in rows.columns if is_meta_column(name)))
        target_columns, by_position = self._target_columns(rows, schema, static)
        if len(rows.columns) != len(target_columns):
            raise SchemaMismatchError(
                f"the query has {len(rows.columns)} columns ({', '.join(rows.columns)}), and {len(target_columns)} are "
                f"inserted: {', '.join(target_columns)}"
            )
        numbered = rows.toDF(*(f"_c{n}" for n in range(len(target_columns))))
        rules = StoreRules.for_insert(rows.sparkSession, by_position=by_position)
        values: dict[str, Column] = {}
        for number, name in enumerate(target_columns):
            if name in values:
                raise SchemaMismatchError(f"the column {name!r} is inserted twice")
            value, data_type = F.col(f"_c{number}"), numbered.schema.fields[number].dataType
            if self.columns:
                value, data_type = _with_field_names(value, data_type, schema[name].dataType)
            values[name] = stored_as(value, data_type, schema[name].dataType, name, rules)
        if static_values is not None:
            values |= {name: static_values.column(name, text, schema[name].dataType) for name, text in static.items()}
        values |= null_columns(field for field in schema.fields if field.name not in values)
        return numbered.select(*(values[name].alias(name) for name in schema.names))

    def _target_columns(self, rows: DataFrame, schema: StructType, static: Collection[str]) -> tuple[list[str], bool]:
        """Return the target columns of the columns of the rows, in the same order, and whether nested fields are
        matched by position, too."""
        sensitive = is_case_sensitive(rows.sparkSession)
        if self.columns:
            return [column_of(name, schema, case_sensitive=sensitive) for name in self.columns], False
        if self.by_name:
            try:
                return [column_of(name, schema, case_sensitive=sensitive) for name in rows.columns], False
            except SchemaMismatchError as error:
                raise SchemaMismatchError(f"{error}; new columns are added by ALTER TABLE … ADD COLUMNS") from None
        table_columns = StructType([one for one in schema.fields if one.name not in static])
        named = _named_columns(rows.schema, table_columns, sensitive=sensitive)
        return named or table_columns.names, not named


def _with_field_names(value: Column, data_type: DataType, target: DataType) -> tuple[Column, DataType]:
    """Return a value of a list of columns, and its type, with the field names of its column: structs are matched by
    position, as in Spark."""
    if not isinstance(data_type, StructType) or not isinstance(target, StructType):
        return value, data_type
    renamed = renamed_fields(data_type, target)
    return (value, data_type) if renamed.simpleString() == data_type.simpleString() else (value.cast(renamed), renamed)


def _named_columns(row_schema: StructType, table_schema: StructType, *, sensitive: bool) -> list[str]:
    """Return the columns of the table that have the names of the columns of a query; empty unless the query has the
    names of all columns, and of all nested fields. Then columns and fields are matched by position, as in Apache
    Hudi."""
    names = [resolve_name(name, table_schema.names, case_sensitive=sensitive) for name in row_schema.names]
    resolved = [name for name in names if name is not None]
    if len(resolved) < len(names) or sorted(resolved) != sorted(table_schema.names):
        return []
    same = (
        has_same_names(row_field.dataType, table_schema[name].dataType)
        for row_field, name in zip(row_schema.fields, resolved, strict=True)
    )
    return resolved if all(same) else []
