"""``df.writeTo(name)`` of Hudi tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.config import options
from pyhudi.config.case_insensitive_options import with_options
from pyhudi.config.layout_methods import layout_method_error
from pyhudi.errors import QueryError, TableExistsError
from pyhudi.spark.sql.catalog import CatalogTable
from pyhudi.spark.sql.commands.command_target import with_write_options
from pyhudi.spark.sql.commands.dml.insert import insert_rows, replace_rows
from pyhudi.spark.sql.tables_by_name import table_of_name
from pyhudi.spark.sql.writes_by_name import TableSpec, save_as_table
from pyhudi.spark.write.dataframe_writer import ERROR, OVERWRITE
from pyhudi.sql.parsers.create_table_parser import PROVIDERS, function_partitions_message


@dataclass(frozen=True, slots=True)
class TableWriter:
    """``df.writeTo(name)`` of a Hudi table: the methods of Spark's ``DataFrameWriterV2``."""

    rows: DataFrame
    text: str
    writer_options: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()

    def using(self, provider: str) -> TableWriter:
        """Set the format."""
        if provider.upper() not in PROVIDERS:
            raise QueryError(f"{self.text} is a Hudi table, and cannot be written as {provider!r}")
        return self

    def option(self, key: str, value: Any) -> TableWriter:
        """Set an option."""
        return self.options(**{key: value})

    def options(self, **writer_options: Any) -> TableWriter:
        """Set options."""
        return TableWriter(self.rows, self.text, with_options(self.writer_options, writer_options), self.partitions)

    def tableProperty(self, property: str, value: str) -> TableWriter:  # noqa: N802
        """Set a property of a new table."""
        return self.options(**{property: value})

    def partitionedBy(self, col: Column | str, *cols: Column | str) -> TableWriter:  # noqa: N802
        """Set the partition columns of a new table.

        Raises:
            QueryError: One is a function of a column.
        """
        names = tuple(self.rows.select(one).columns[0] for one in (col, *cols))
        for name in names:
            if name.endswith(")") and name not in self.rows.columns:
                raise QueryError(function_partitions_message(name))
        return TableWriter(self.rows, self.text, self.writer_options, names)

    def clusterBy(self, col: str, *cols: str) -> TableWriter:  # noqa: ARG002, N802
        """Refuse the clustering of Spark's own tables.

        Raises:
            ConfigError: Always.
        """
        raise layout_method_error("clusterBy")

    def create(self) -> None:
        """Create the table from the rows.

        Raises:
            TableExistsError: It exists.
        """
        table = self._found()
        if table is not None:
            raise TableExistsError(
                f"the table {table.sql} already exists; use append() to add the rows, createOrReplace() or replace() "
                "to replace the table"
            )
        self._save(ERROR)

    def replace(self) -> None:
        """Replace the existing table."""
        self._existing()
        self._save(OVERWRITE)

    def createOrReplace(self) -> None:  # noqa: N802
        """Create or replace the table."""
        self._save(OVERWRITE)

    def append(self) -> None:
        """Insert the rows, columns by name."""
        insert_rows(with_write_options(self._existing(), self.writer_options), self.rows, by_name=True)

    def overwritePartitions(self) -> None:  # noqa: N802
        """Replace the partitions that contain the rows."""
        dynamic = {**self.writer_options, options.OVERWRITE_MODE.key: "DYNAMIC"}
        table = with_write_options(self._existing(), dynamic)
        insert_rows(table, self.rows, overwrite=True, by_name=True)

    def overwrite(self, condition: Column | str) -> None:
        """Replace the rows that meet a condition, in one commit. The new rows must meet it, too.

        Args:
            condition: The condition, or the name of a column, as in Spark.
        """
        column = F.col(condition) if isinstance(condition, str) else condition
        replace_rows(with_write_options(self._existing(), self.writer_options), self.rows, column)

    def _found(self) -> CatalogTable | None:
        return table_of_name(self.rows.sparkSession, self.text)

    def _existing(self) -> CatalogTable:
        table = self._found()
        if table is None:
            raise QueryError(f"there is no Hudi table {self.text}; create it with create() or createOrReplace()")
        return table

    def _save(self, mode: str) -> None:
        spec = TableSpec(self.partitions, self.writer_options)
        save_as_table(self.rows, self.text, spec, is_hudi=True, mode=mode, redefine=True)
