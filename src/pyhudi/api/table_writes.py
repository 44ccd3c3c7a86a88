"""Writes of ``HudiTable``, which run on Spark: writes of DataFrames, and changes of existing rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.config.options import OPERATION, PARTITIONS_TO_DELETE
from pyhudi.errors import ConfigError
from pyhudi.write.write_result import ChangeResult, WriteResult

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pyhudi.spark.dml.merge.merge_builder import MergeBuilder


class TableWrites(ABC):
    """Methods of `HudiTable` that write."""

    _path: str
    _options: Options
    _alias: str | None

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The table's current Arrow schema."""

    def upsert(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Insert new records and update those whose key the table has.

        Args:
            df: Rows to write, with the table's key, partition and ordering columns.
            options: Apache Hudi's write options, on top of the table's.

        Returns:
            The result, with the instant of the commit and the files written.

        Raises:
            ConfigError: ``df`` is not a Spark DataFrame, or the options do not fit the table. Nothing is written.
            ConflictError: Another writer changed the same file groups first; this write has been rolled back.
        """
        return self._write(df, "upsert", options)

    def insert(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Add records without looking up their keys. Arguments and errors as of :meth:`upsert`."""
        return self._write(df, "insert", options)

    def bulk_insert(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Add many records at once, for first loads. Arguments and errors as of :meth:`upsert`."""
        return self._write(df, "bulk_insert", options)

    @overload
    def delete(
        self, where: DataFrame, options: Mapping[str, object] | None = None, *, spark: SparkSession | None = None
    ) -> WriteResult: ...
    @overload
    def delete(
        self,
        where: str | Column | None = None,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
    ) -> ChangeResult: ...
    def delete(
        self,
        where: DataFrame | str | Column | None = None,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
    ) -> WriteResult | ChangeResult:
        """Delete the rows that satisfy a condition (None: all), or the records with the keys of a DataFrame.

        Args:
            where: SQL text, which prunes files; a Column; or a DataFrame, which needs only the key and partition
                columns.
            options: Options of the write.
            spark: Session to run a condition in; None for the active one. A DataFrame has its own.

        Returns:
            The result of the write for a DataFrame, otherwise that of the statement, with the number of deleted rows.

        Raises:
            ConfigError: ``where`` is neither a condition nor a DataFrame.
            ConflictError: Another writer changed the rows concurrently, more often than the write is retried.
            SetupError: A condition is given, ``spark`` is None, and there is no active session.
        """
        if hasattr(type(where), "sparkSession"):  # A Column has any attribute.
            return self._write(where, "delete", options)
        if isinstance(where, bool | int | list | tuple | Mapping):
            raise ConfigError(
                f"delete() takes a condition such as 'id = 1', or a DataFrame with record keys, not {where!r}"
            )
        return self._delete_where(where, options, spark)

    def insert_overwrite(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Replace all records of the partitions that occur in ``df``. Arguments and errors as of :meth:`upsert`."""
        return self._write(df, "insert_overwrite", options)

    def insert_overwrite_table(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Replace all records of the table. Arguments and errors as of :meth:`upsert`."""
        return self._write(df, "insert_overwrite_table", options)

    def delete_partition(
        self,
        partitions: Sequence[str] | DataFrame,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
    ) -> WriteResult:
        """Drop whole partitions.

        Args:
            partitions: Partition paths, in which ``*`` matches any text, or a DataFrame whose rows belong to the
                partitions.
            options: Apache Hudi's write options, on top of the table's.
            spark: Session that drops the partitions of paths; None for the active one. A DataFrame has its own.

        Returns:
            The result of the write.

        Raises:
            ConfigError: ``partitions`` is a single text, or a path has a comma or a blank at an end.
            SetupError: Paths are given, ``spark`` is None, and there is no active session.
        """
        if isinstance(partitions, str):
            raise ConfigError(
                f"delete_partition takes a list of partition paths, not the text {partitions!r}; use [{partitions!r}]"
            )
        if not isinstance(partitions, Sequence):
            return self._write(partitions, "delete_partition", options)
        for path in partitions:
            if "," in path or path != path.strip():
                raise ConfigError(
                    f"the partition path {path!r} has a comma, or a leading or trailing blank, which would select "
                    "other partitions; pass a DataFrame with rows of the partition instead"
                )
        from pyhudi.spark.session import active_session

        spark = spark or active_session()
        from pyhudi.spark.execution.local_relations import empty_frame
        from pyhudi.spark.spark_types import spark_schema

        nothing = empty_frame(spark, spark_schema(self.schema))
        paths = {PARTITIONS_TO_DELETE.key: ",".join(partitions)}
        return self._write(nothing, "delete_partition", {**(options or {}), **paths})

    def _write(self, df: DataFrame, operation: str, options: Mapping[str, object] | None) -> WriteResult:
        self._check_frame(operation, df)
        from pyhudi.spark.write.dataframe_writer import write

        write_options = {**self._options, **(options or {}), OPERATION.key: operation}
        return write(df, self._path, write_options, "append")

    @staticmethod
    def _check_frame(operation: str, df: object) -> None:
        if not hasattr(df, "sparkSession"):
            raise ConfigError(
                f"{operation} requires a Spark DataFrame, not {type(df).__module__}.{type(df).__qualname__}; "
                "create one with spark.createDataFrame(…), which accepts rows and pandas DataFrames"
            )

    def merge(self, source: DataFrame, on: str | Column, options: Mapping[str, object] | None = None) -> MergeBuilder:
        """Start a MERGE: clauses determine the treatment of rows that match, and of those that do not; ``execute()``
        runs it.

        Columns of the table are ``target.…``, or by its `alias`; those of the source by the source's own alias
        (``df.alias("source")``).

        Args:
            source: The rows to merge.
            on: Condition for matching rows: SQL text or a Column with columns of both sides.
            options: Options of the write, such as ``hoodie.write.num.retries.on.conflict.failures``.

        Returns:
            A MERGE without clauses.

        Raises:
            ConfigError: ``source`` is not a Spark DataFrame, or ``on`` is a name or a list of names.
        """
        if hasattr(type(on), "sparkSession"):
            raise ConfigError("merge(source, on) takes the source first and the condition second")
        self._check_frame("merge", source)
        self._check_merge_condition(source, on)
        from pyhudi.spark.dml.merge.merge_builder import MergeBuilder

        return MergeBuilder(self._path, self._options.merged(options or {}), self._alias or "target", source, on)

    def _check_merge_condition(self, source: DataFrame, on: object) -> None:
        names = [on] if isinstance(on, str) and on in source.columns else on
        if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
            target = self._alias or "target"
            condition = " AND ".join(f"{target}.{name} = source.{name}" for name in names)
            raise ConfigError(
                f"merge() takes a condition, not names of columns ({', '.join(names)}): merge(df.alias('source'), "
                f"{condition!r})"
            )

    def update(
        self,
        set: Mapping[str, object],
        where: str | Column | None = None,
        options: Mapping[str, object] | None = None,
        *,
        spark: SparkSession | None = None,
    ) -> ChangeResult:
        """Set columns of the rows that satisfy a condition (None: of all) to new values, in one commit.

        Args:
            set: New values by column, as SQL texts or Columns; dotted paths for fields of structs.
            where: SQL text, which prunes files, or a Column.
            options: Options of the write.
            spark: Session to run in; None for the active one.

        Returns:
            The result, with the number of updated rows.

        Raises:
            ConfigError: A column of the record key is assigned, or ``set`` is no mapping.
            QueryError: A new value, or the condition, is neither SQL text nor a Column.
            RecordKeyError: A row would move to a partition that has a record of its key.
            SchemaMismatchError: A column does not exist, or a value does not match its type.
            SetupError: ``spark`` is None, and there is no active session.
            ConflictError: Another writer changed the rows concurrently, more often than the write is retried.
        """
        if not isinstance(set, Mapping):
            swapped = isinstance(where, Mapping)
            raise ConfigError(
                f"update() takes the new values by column first, not {set!r}"
                + (", and the condition second" if swapped else "")
                + ": update({'fare': 'fare + 1'}, 'id = 1')"
            )
        from pyhudi.spark.session import active_session

        spark = spark or active_session()
        from pyhudi.spark.dml.update import RowSelection, update

        opts = self._options.merged(options or {})
        return update(spark, self._path, opts, set, RowSelection(where, self._alias))

    def _delete_where(
        self, where: str | Column | None, options: Mapping[str, object] | None, spark: SparkSession | None
    ) -> ChangeResult:
        from pyhudi.spark.session import active_session

        spark = spark or active_session()
        from pyhudi.spark.dml.update import RowSelection, delete

        opts = self._options.merged(options or {})
        return delete(spark, self._path, opts, RowSelection(where, self._alias))
