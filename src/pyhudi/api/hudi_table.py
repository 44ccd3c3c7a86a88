"""``HudiTable``: a table by its path or name. Opens, inspects and reads without Spark, and writes with Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.names_of_other_formats import METHODS
from pyhudi.api.schema_update import SchemaUpdate
from pyhudi.api.services import TableServices
from pyhudi.api.table_queries import TableQueries
from pyhudi.api.table_writes import TableWrites
from pyhudi.config import Options
from pyhudi.config.misspelled_options import refuse_misspelled
from pyhudi.errors import ConfigError, InstantNotFoundError, NotAHudiTableError
from pyhudi.keygen.key_spec import check_generator_registered
from pyhudi.metadata.reader.metadata_validation import is_usable, metadata_differences
from pyhudi.read.inspection.result_table import ResultTable
from pyhudi.read.inspection.table_detail import detail_as_html, table_detail
from pyhudi.read.inspection.table_history import history
from pyhudi.read.inspection.table_inspection import Inspect
from pyhudi.read.query.non_hudi_contents import describe_contents
from pyhudi.read.query.table_location import refuse_nested_table, table_above
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.sql.sql_parser import check_sql_parser
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot
from pyhudi.transaction.locks.lock_factory import check_lock_provider

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECENT = 10
_TABLE_NAME = re.compile(r"\w+(\.\w+){1,2}")
"""A path that may be meant as the name of a table."""


class HudiTable(TableQueries, TableWrites):
    """A Hudi table. Every call loads the table's current state; nothing is cached between calls.

    Use :meth:`for_path` or :meth:`for_name` to open a table, and :meth:`create` to make an empty one.
    """

    def __init__(self, path: str, options: Options | None = None, alias: str | None = None) -> None:
        """Initialize; called by :meth:`for_path` and :meth:`create` only.

        Args:
            path: Path or URI of the table.
            options: Parsed options.
            alias: Name of the table in conditions, see :meth:`alias`.

        Raises:
            ConfigError: The class is called directly.
        """
        if not isinstance(options, Options):
            raise ConfigError(
                f"HudiTable({path!r}) does not open a table: use HudiTable.for_path(path) to open one, "
                "HudiTable.create(path, options) to create an empty one, or write a DataFrame, which creates its "
                "table"
            )
        self._path = path
        self._options = options
        self._alias = alias

    if not TYPE_CHECKING:  # which would let type checkers accept every name

        def __getattr__(self, name: str) -> Any:
            """Say what a method of another table format is called here."""
            if hasattr(type(self), name):  # a property, whose own error this is
                return object.__getattribute__(self, name)
            cure = METHODS.get(name)
            message = f"'HudiTable' object has no attribute {name!r}" + (f": use {cure}" if cure else "")
            raise AttributeError(message, name=name, obj=self)

    # --- opening ---------------------------------------------------------------------------------------------------

    @classmethod
    def for_path(cls, path: str, options: Mapping[str, object] | None = None) -> HudiTable:
        """Open an existing table.

        Args:
            path: Path or URI of the table's root folder.
            options: Options for all that is done with the table: storage settings and ``hoodie.*`` keys.

        Returns:
            The table.

        Raises:
            NotAHudiTableError: There is no table at ``path``.
            UnsupportedTableError: The version or a feature of the table is not supported.
        """
        table = cls(_path(path), Options.parse(options or {}))
        try:
            TableMetaClient.open(table._path, table._options)
        except NotAHudiTableError:
            above = table_above(table._path, table._options)
            if above is not None:
                instead = f"it is inside the table at {above!r}, which can be opened"
            else:
                instead = describe_contents(table._path, table._options)
                if not instead and _TABLE_NAME.fullmatch(table._path):
                    instead = "HudiTable.for_name(name) opens a table by its name"
            if not instead:
                raise
            raise NotAHudiTableError(f"there is no Hudi table at {table._path!r}: {instead}") from None
        return table

    @classmethod
    def for_name(
        cls, name: str, options: Mapping[str, object] | None = None, *, spark: SparkSession | None = None
    ) -> HudiTable:
        """Open an existing table by its name in Spark's catalog.

        Args:
            name: Name of the table, such as ``trips`` or ``shop.trips``.
            options: Options for all that is done with the table, over those in the table's properties and the storage
                settings of the session.
            spark: Session with the catalog; None for the active one.

        Returns:
            The table.

        Raises:
            NotAHudiTableError: There is no Hudi table of that name.
            ConfigError: ``name`` is no text, or ``options`` are no mapping.
            SqlSyntaxError: ``name`` is not a name.
            SetupError: ``spark`` is None, and there is no active session; or the package sqlglot is missing.
            UnsupportedTableError: The version or a feature of the table is not supported.
        """
        from pyhudi.spark.session import active_session

        if not isinstance(name, str) or not isinstance(options or {}, Mapping):
            raise ConfigError(
                "HudiTable.for_name takes a name and options; pass the session as for_name(name, spark=…)"
            )
        spark = spark or active_session()
        check_sql_parser()
        from pyhudi.spark.sql.tables_by_name import open_table

        table = open_table(spark, name, options)
        return cls(table.location, table.opts)

    @classmethod
    def create(cls, path: str, options: Mapping[str, object]) -> HudiTable:
        """Create an empty table.

        Args:
            path: Path or URI of the table's root folder.
            options: Apache Hudi's options: ``hoodie.table.name``, record key, partition path, table type and others.

        Returns:
            The new table.

        Raises:
            TableExistsError: There is one already, or the path lies in another table.
            ConfigError: Options are missing or contradict each other, or the lock provider is not supported.
            UnsupportedTableError: The key generator is not registered (`pyhudi.register_key_generator`).
        """
        refuse_misspelled(options)
        settings = Options.parse(options)
        refuse_nested_table(_path(path), settings)
        check_lock_provider(settings)
        config = TableConfig.for_new_table(settings)
        check_generator_registered(config)
        TableMetaClient.create(_path(path), config, settings)
        return cls(_path(path), settings)

    @classmethod
    def exists(cls, path: str, options: Mapping[str, object] | None = None) -> bool:
        """Return True if there is a Hudi table at ``path``.

        Args:
            path: Path or URI of the table's root folder.
            options: Storage settings, as for :meth:`for_path`.
        """
        try:
            TableMetaClient.open(_path(path), Options.parse(options or {}))
        except NotAHudiTableError:
            return False
        return True

    def alias(self, name: str) -> HudiTable:
        """Return the same table under a name.

        Args:
            name: Name by which expressions of `merge`, `update` and `delete` can call the table.
        """
        return HudiTable(self._path, self._options, name)

    def _pin(self) -> TableSnapshot:
        return TableSnapshot.load(TableMetaClient.open(self._path, self._options))

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The table's URI, as Spark takes it. Each access opens the table."""
        return self._pin().storage.uri()

    @property
    def config(self) -> TableConfig:
        """The table's configuration. Each access reads ``hoodie.properties``."""
        return self._pin().config

    @property
    def schema(self) -> pa.Schema:
        """The table's current Arrow schema, meta columns first; empty when it has no columns yet. Each access reads the
        timeline, so that it is that of the last commit."""
        current = with_snapshot(self._pin, resolve_table_schema)[1]
        return current.schema if current is not None else pa.schema([])

    @property
    def latest_instant(self) -> str | None:
        """Requested time of the last completed write; None when there was none. Each access reads the timeline."""
        last = self._pin().active.timeline.writes().completed().last
        return None if last is None else last.requested

    def completion_of(self, instant: str) -> str:
        """Return the ``begin`` of an incremental query that continues after an instant.

        Args:
            instant: Requested time of a completed instant.

        Returns:
            The completion time of the instant from table version 8 on, the instant itself before.

        Raises:
            InstantNotFoundError: There is no such completed instant on the active timeline.
        """
        timeline = self._pin().active.timeline
        if not timeline.is_completed(instant):
            raise InstantNotFoundError(
                f"{self._path} has no completed instant {instant!r} on its active timeline; history() lists them"
            )
        return timeline.completion_of(instant) or instant

    def history(self, *, archived: bool = False) -> ResultTable:
        """Return the instants of the table, newest first.

        Args:
            archived: Also return the instants that have left the active timeline.

        Returns:
            One row per instant (:data:`pyhudi.read.inspection.table_history.HISTORY_SCHEMA`): requested and completion
            time, action, state, operation, and what was written.
        """
        return ResultTable(with_snapshot(self._pin, lambda now: history(now, archived=archived))[1])

    def detail(self) -> dict[str, Any]:
        """Return the name, type, version, keys, partitioning, size (bytes), state and properties of the table."""
        return with_snapshot(self._pin, table_detail)[1]

    @property
    def inspect(self) -> Inspect:
        """Files, file slices, partitions and commits of the table, as Arrow tables."""
        return Inspect(self._pin)

    def alter_schema(self) -> SchemaUpdate:
        """Return a collector of changes of the table's columns; its ``commit()`` applies them in one commit.

        No files are rewritten (schema-on-read evolution). Apache Hudi reads the table correctly only with
        ``hoodie.schema.on.read.enable=true``.
        """
        return SchemaUpdate(self._path, self._options)

    @property
    def services(self) -> TableServices:
        """Table services: compaction, clustering, cleaning, archival, indexes, savepoints, rollback, restore, repairs,
        upgrades."""
        return TableServices(self._path, self._options)

    def validate_metadata(self, *, indexes: bool = False, spark: SparkSession | None = None) -> ResultTable:
        """Compare the metadata table with the storage.

        Args:
            indexes: Also compare the record index and the secondary indexes with the rows: their numbers, the entries,
                and the file groups that the record index names. Spark reads the record keys and indexed columns of all
                rows.
            spark: Session for ``indexes``; None for the active one.

        Returns:
            One row per committed file on which the two differ, per difference of an index, and per reason not to use
            the metadata table (:data:`pyhudi.metadata.reader.metadata_validation.DIFFERENCE_SCHEMA`); no rows if the
            metadata table is correct.

        Raises:
            SetupError: ``indexes`` needs Spark, and there is no session.
        """
        now, differences = with_snapshot(self._pin, metadata_differences)
        if not indexes:
            return ResultTable(differences)
        from pyhudi.spark.session import active_session

        session = spark or active_session()
        from pyhudi.spark.indexes.index_validation import index_differences

        if not is_usable(differences):
            return ResultTable(differences)
        return ResultTable(pa.concat_tables([differences, index_differences(session, now, self._options)]))

    # --- showing ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        config = self.config
        return f"HudiTable({self._path!r}, name={config.name!r}, {config.table_type}, version {config.version})"

    def _repr_html_(self) -> str:
        recent = self.history().slice(0, _RECENT).drop_columns("archived").to_arrow()
        return detail_as_html(self.detail(), recent)


def _path(path: object) -> str:
    """Return a path as text.

    Raises:
        ConfigError: It is not a path.
    """
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise ConfigError(f"the path of a table must be a text or a pathlib.Path, not {path!r}")
    return str(path)
