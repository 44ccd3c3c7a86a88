"""``HudiTable``: a table by its path. Opens, inspects and reads without Spark, and writes through Spark."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.config import Options
from pyhudi.errors import ConfigError, InstantNotFoundError, NotAHudiTableError, QueryError
from pyhudi.metadata.validate import differences
from pyhudi.read.filters import Filter, RowFilter
from pyhudi.read.inspect import Inspect, history
from pyhudi.read.instants import QueryTime
from pyhudi.read.pinned import PinnedTable
from pyhudi.read.table_schema import table_schema
from pyhudi.scan import Scan
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.table.config import TableConfig
from pyhudi.table.fsview import FileSystemView
from pyhudi.table.metaclient import TableMetaClient
from pyhudi.table_services import TableServices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyhudi.spark.writer import WriteResult

_RECENT = 10


class HudiTable:
    """A Hudi table. Every call looks at the table as it is at that moment; nothing is cached between calls."""

    def __init__(self, path: str, options: Options) -> None:
        self._path = path
        self._options = options

    # --- opening ---------------------------------------------------------------------------------------------------

    @classmethod
    def for_path(cls, path: str, options: Mapping[str, object] | None = None) -> HudiTable:
        """Open the table at ``path``; ``options`` hold for all that is done with it (storage settings, ``hoodie.*``).

        Raises:
            NotAHudiTableError: there is none.
            UnsupportedTableError: its version or a feature of it is not supported.
        """
        table = cls(str(path), Options.parse(options or {}))
        TableMetaClient.open(table._path, table._options)
        return table

    @classmethod
    def create(cls, path: str, options: Mapping[str, object]) -> HudiTable:
        """Create an empty table from Apache Hudi's options: ``hoodie.table.name``, record key, partition path, … .

        Raises:
            TableExistsError: there is one already.
            ConfigError: options are missing or contradict each other.
        """
        settings = Options.parse(options)
        TableMetaClient.create(str(path), TableConfig.for_new_table(settings), settings)
        return cls(str(path), settings)

    @classmethod
    def exists(cls, path: str, options: Mapping[str, object] | None = None) -> bool:
        """Whether there is a Hudi table at ``path``."""
        try:
            TableMetaClient.open(str(path), Options.parse(options or {}))
        except NotAHudiTableError:
            return False
        return True

    def _now(self) -> PinnedTable:
        return PinnedTable.of(TableMetaClient.open(self._path, self._options))

    # --- what it is ------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The table's address, as Spark takes it."""
        return self._now().storage.uri()

    @property
    def config(self) -> TableConfig:
        """What ``hoodie.properties`` say."""
        return self._now().config

    @property
    def schema(self) -> pa.Schema:
        """The table's columns as of now, meta columns first; empty when it has none yet."""
        found = table_schema(self._now())
        return found.schema if found is not None else pa.schema([])

    @property
    def latest_instant(self) -> str | None:
        """Requested time of the last completed write; None when there was none."""
        last = self._now().active.timeline.writes().completed().last
        return None if last is None else last.requested

    def completion_of(self, instant: str) -> str:
        """What an incremental query of this table takes as ``begin`` to go on after ``instant``: the completion time
        from table version 8 on, the instant itself before.

        Raises:
            InstantNotFoundError: no such completed instant on the active timeline.
        """
        timeline = self._now().active.timeline
        if not timeline.is_completed(instant):
            raise InstantNotFoundError(f"{self._path} has no completed instant {instant!r} on its active timeline")
        return timeline.completion_of(instant) or instant

    def history(self, *, archived: bool = False) -> pa.Table:
        """The instants, newest first: requested and completion time, action, state, operation, and what was written
        (:data:`pyhudi.read.inspect.HISTORY_SCHEMA`). ``archived`` adds those that have left the active timeline."""
        return history(self._now(), archived=archived)

    def detail(self) -> dict[str, Any]:
        """Name, type, version, keys, partitioning, size and state of the table, and its properties."""
        now = self._now()
        config, timeline = now.config, now.active.timeline
        slices = FileSystemView.load(now).latest_slices()
        files = Inspect(lambda: now).files()
        last = timeline.writes().completed().last
        return {
            "path": now.storage.uri(),
            "name": config.name,
            "table_type": str(config.table_type),
            "table_version": config.version,
            "record_keys": list(config.record_keys),
            "key_generator": str(config.keygen),
            "partition_fields": [f.name for f in config.partition_fields],
            "ordering_fields": list(config.ordering_fields),
            "merge_mode": str(config.merge_mode),
            "base_file_format": str(config.base_file_format),
            "timezone": str(config.timezone),
            "metadata_partitions": list(config.metadata_partitions),
            "partitions": len(slices["partition"].unique()),
            "file_groups": slices.num_rows,
            "files": files.num_rows,
            "size": sum(files["size"].to_pylist()),
            "latest_instant": None if last is None else last.requested,
            "latest_completion": None if last is None else last.completion,
            "pending": [str(i) for i in timeline.pending()],
            "properties": dict(config.properties),
        }

    @property
    def inspect(self) -> Inspect:
        """Files, file slices, partitions and commits as Arrow tables."""
        return Inspect(self._now)

    @property
    def services(self) -> TableServices:
        """Compaction and log compaction, planned, run and shown; indexes, built and dropped."""
        return TableServices(self._path, self._options)

    # --- reading ---------------------------------------------------------------------------------------------------

    def scan(
        self,
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        *,
        as_of: QueryTime | None = None,
        begin: QueryTime | None = None,
        end: QueryTime | None = None,
        read_optimized: bool = False,
    ) -> Scan:
        """A query: the latest snapshot, the table ``as_of`` a time, or with ``begin`` what changed after it (up to and
        with ``end``). Nothing is read before one of the scan's ``to_…`` methods is called.

        ``filter`` is ``[(column, op, value), …]``, a list of such lists (any of them), a pyarrow expression, or SQL
        text (for Spark alone). Times are what Apache Hudi accepts, or Python's ``date`` and ``datetime``.
        """
        if isinstance(columns, str):
            raise QueryError(f"columns must be a list of names, not the text {columns!r}; write [{columns!r}]")
        return Scan(
            self._now,
            self._options,
            RowFilter.parse(filter),
            None if columns is None else tuple(columns),
            as_of,
            begin,
            end,
            read_optimized,
        )

    def lookup(self, keys: Sequence[Any], columns: Sequence[str] | None = None, *, by: str = RECORD_KEY) -> pa.Table:
        """The rows with these record keys (as ``_hoodie_record_key`` has them), or with these values in the column
        ``by``, in no particular order.

        With a record index, and a secondary index of the column, only the files that have them are read, and no Spark
        is needed; else as many as the other indexes of the metadata table leave.

        Raises:
            QueryError: the table does not store record keys, or has no such column.
        """
        if isinstance(keys, str):
            raise QueryError(f"lookup takes a list of keys, not the text {keys!r}")
        if by != RECORD_KEY:
            return self.scan([(by, "in", list(keys))], columns).to_arrow()
        now = self._now()
        if not now.config.populate_meta_fields:
            raise QueryError(
                "the table does not store record keys (hoodie.populate.meta.fields=false); scan with a filter on "
                f"{', '.join(now.config.record_keys)} instead"
            )
        return replace(self.scan([(RECORD_KEY, "in", list(keys))], columns), now=lambda: now).to_arrow()

    def validate_metadata(self) -> pa.Table:
        """Compare the metadata table with the storage: one row for each committed file that they disagree on, or for
        each reason not to use it (:data:`pyhudi.metadata.validate.DIFFERENCE_SCHEMA`); none if all is well."""
        now = self._now()
        return differences(now.storage, now.config, now.active)

    # --- writing ---------------------------------------------------------------------------------------------------

    def upsert(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Insert new records and update those whose key is there."""
        return self._write(df, "upsert", options)

    def insert(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Add records without looking for their keys."""
        return self._write(df, "insert", options)

    def bulk_insert(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Add many records at once, for first loads."""
        return self._write(df, "bulk_insert", options)

    def delete(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Delete the records with the keys of ``df``, which needs only the key and partition columns."""
        return self._write(df, "delete", options)

    def insert_overwrite(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Replace all records of the partitions that ``df`` touches."""
        return self._write(df, "insert_overwrite", options)

    def insert_overwrite_table(self, df: DataFrame, options: Mapping[str, object] | None = None) -> WriteResult:
        """Replace all records of the table."""
        return self._write(df, "insert_overwrite_table", options)

    def delete_partition(
        self, partitions: Sequence[str] | DataFrame, options: Mapping[str, object] | None = None
    ) -> WriteResult:
        """Drop whole partitions, given by path (``*`` stands for any text) or as those that the rows of a DataFrame
        belong to."""
        if isinstance(partitions, str):
            raise ConfigError(f"delete_partition takes a list of partition paths, not the text {partitions!r}")
        if not isinstance(partitions, Sequence):
            return self._write(partitions, "delete_partition", options)
        for path in partitions:
            if "," in path or path != path.strip():
                raise ConfigError(
                    f"the partition path {path!r} has a comma, or a blank at an end, which would name other "
                    "partitions; give a DataFrame with rows of the partition instead"
                )
        from pyhudi.spark.session import active_session
        from pyhudi.spark.types import spark_schema

        nothing = active_session().createDataFrame([], spark_schema(self.schema))
        paths = {"hoodie.datasource.write.partitions.to.delete": ",".join(partitions)}
        return self._write(nothing, "delete_partition", {**(options or {}), **paths})

    def _write(self, df: DataFrame, operation: str, options: Mapping[str, object] | None) -> WriteResult:
        if not hasattr(df, "sparkSession"):
            raise ConfigError(
                f"{operation} takes a DataFrame of Spark, not {type(df).__module__}.{type(df).__qualname__}; "
                "make one with spark.createDataFrame(…), which takes rows, and tables of pandas"
            )
        from pyhudi.spark.writer import write

        given = {**self._options, **(options or {}), "hoodie.datasource.write.operation": operation}
        return write(df, self._path, given, "append")

    # --- showing ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        config = self.config
        return f"HudiTable({self._path!r}, name={config.name!r}, {config.table_type}, version {config.version})"

    def _repr_html_(self) -> str:
        detail = self.detail()
        shown = {k: v for k, v in detail.items() if k != "properties" and v not in (None, [], "")}
        facts = "".join(f"<tr><th align='left'>{_cell(k)}</th><td>{_cell(v)}</td></tr>" for k, v in shown.items())
        recent = self.history().slice(0, _RECENT)
        names = [n for n in recent.column_names if recent[n].null_count < recent.num_rows and n != "archived"]
        head = "".join(f"<th>{_cell(n)}</th>" for n in names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{_cell(row[n])}</td>" for n in names) + "</tr>" for row in recent.to_pylist()
        )
        return (
            f"<h4>{_cell(detail['name'])}</h4><table>{facts}</table>"
            f"<h5>last instants</h5><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


def _cell(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str("" if value is None else value)
    return html.escape(text)
