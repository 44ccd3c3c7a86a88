"""Queries of ``HudiTable``: scans, change data, lookups of keys, and vector search. None of them needs Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyhudi.api.change_scan import ChangeScan
from pyhudi.api.scan import Scan
from pyhudi.api.vector_search import VectorSearch
from pyhudi.config import Options
from pyhudi.errors import QueryError
from pyhudi.read.filters.row_filter import Filter, RowFilter
from pyhudi.read.functions.vector_distance import Metric, check_count, check_query
from pyhudi.read.query.query_instants import QueryTime
from pyhudi.read.schema.table_columns import resolve_table_schema
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot


class TableQueries(ABC):
    """Methods of `HudiTable` that read rows."""

    _options: Options

    @property
    @abstractmethod
    def config(self) -> TableConfig:
        """The table's configuration."""

    @abstractmethod
    def _pin(self) -> TableSnapshot:
        """Open the table at its latest instant."""

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
        """Create a query of the latest snapshot, of a past one (``as_of``), or of a range of changes (``begin``).

        Nothing is read before one of the scan's ``to_…`` methods is called.

        Args:
            filter: ``[(column, op, value), …]`` (all must hold), a list of such lists (any must hold), a pyarrow
                expression, or SQL text. Without Spark, SQL text may only compare columns with literals of their own
                type. Dates and times without a zone are in the session's time zone (``spark.sql.session.timeZone``) for
                ``to_spark``, else in UTC; a date is its midnight there.
            columns: Names of the columns to return; None for all.
            as_of: Time of the snapshot, in any form that Apache Hudi accepts, or a ``date`` or ``datetime``.
            begin: Start of the range of changes, exclusive; forms as of ``as_of``.
            end: End of the range, inclusive; None for the latest instant.
            read_optimized: Read base files alone, without the log files of a merge-on-read table.

        Returns:
            The query.

        Raises:
            QueryError: ``columns`` is a single text, or ``filter`` has none of these forms.
        """
        if isinstance(columns, str):
            raise QueryError(f"columns must be a list of names, not the text {columns!r}; use [{columns!r}]")
        return Scan(
            self._pin,
            self._options,
            RowFilter.parse(filter),
            None if columns is None else tuple(columns),
            as_of,
            begin,
            end,
            read_optimized,
        )

    def changes(self, begin: QueryTime, end: QueryTime | None = None) -> ChangeScan:
        """Create a query of the inserts, updates and deletes of the commits of a range (change data).

        The table must log its changes (``hoodie.table.cdc.enabled``).

        Args:
            begin: Start of the range, exclusive; forms as of ``as_of`` in `scan`, or ``"earliest"``.
            end: End of the range, inclusive; None for the latest instant.

        Returns:
            The query. Nothing is read before one of its ``to_…`` methods is called.
        """
        return ChangeScan(self._pin, self._options, begin, end)

    def lookup(self, keys: Sequence[Any], columns: Sequence[str] | None = None, *, by: str = RECORD_KEY) -> pa.Table:
        """Return the rows with these record keys, or with these values in the column ``by``, in no particular order.

        With a record index, and a secondary index of the column, only the files that have the rows are read, and no
        Spark is needed; otherwise the files that the other indexes of the metadata table leave.

        Args:
            keys: Record keys, as texts in the form of ``_hoodie_record_key``, or as dicts with a value for each field
                of the record key: ``{"id": 7}``.
            columns: Names of the columns to return; None for all.
            by: Column to look the values up in.

        Returns:
            The rows found.

        Raises:
            QueryError: ``keys`` is not a list or does not fit the table's key fields; the table does not store record
                keys as texts, or has no such column.
        """
        if isinstance(keys, str | Mapping) or not isinstance(keys, Iterable):
            raise QueryError(f"lookup takes a list of keys, not {keys!r}; use [{keys!r}]")
        keys = list(keys)
        if any(isinstance(key, Mapping) for key in keys):
            return self.scan(_by_fields(keys, by, self.config.record_keys), columns).to_arrow()
        if by != RECORD_KEY:
            return self.scan([(by, "in", list(keys))], columns).to_arrow()
        return with_snapshot(self._pin, lambda now: self._rows_of_keys(now, keys, columns))[1]

    def _rows_of_keys(self, now: TableSnapshot, keys: Sequence[Any], columns: Sequence[str] | None) -> pa.Table:
        """Return the rows of a snapshot with these record keys. Errors as of `lookup`."""
        _check_texts(keys, now.config.record_keys)
        if not now.config.populate_meta_fields:
            raise QueryError(
                "the table does not store record keys (hoodie.populate.meta.fields=false); scan with a filter on "
                f"{', '.join(now.config.record_keys)} instead"
            )
        if resolve_table_schema(now) is None:
            return replace(self.scan(None, columns), now=lambda: now).to_arrow()  # no row was written yet
        return replace(self.scan([(RECORD_KEY, "in", list(keys))], columns), now=lambda: now).to_arrow()

    def vector_search(
        self,
        query: Sequence[float],
        column: str,
        k: int = 10,
        *,
        metric: str = "cosine",
        filter: Filter | None = None,
        columns: Sequence[str] | None = None,
        as_of: QueryTime | None = None,
    ) -> VectorSearch:
        """Create a query of the rows whose vectors are nearest to a query vector (exact, by brute force).

        The rows come nearest first, with their distance in the column ``_hudi_distance``, and without the vectors.

        Args:
            query: The query vector: numbers, as many as the dimension of the column.
            column: A column of the type VECTOR, or with arrays of numbers.
            k: Number of rows to find.
            metric: ``cosine`` (1 minus the cosine of the angle), ``l2`` (Euclidean) or ``dot_product`` (negated).
            filter: Condition on the rows to search, in any form that `scan` takes.
            columns: Names of the columns to return; None for all.
            as_of: Time of the snapshot to search; None for the latest one.

        Returns:
            The query. Nothing is read before one of its ``to_…`` methods is called.

        Raises:
            QueryError: An argument has none of these forms.
        """
        scan = self.scan(filter, columns, as_of=as_of)
        return VectorSearch(scan, check_query(query, column), column, check_count(k), Metric.parse(metric))


def _check_texts(keys: Sequence[Any], fields: Sequence[str]) -> None:
    """Check that record keys have the form of ``_hoodie_record_key``.

    Raises:
        QueryError: A key is another value, such as the number in the record key field.
    """
    other = next((key for key in keys if not isinstance(key, str | pa.Scalar | None)), None)
    if other is not None:
        names = f", or a dict with {', '.join(fields)}" if fields else ""
        cure = f"{str(other)!r} or { {fields[0]: other} }" if len(fields) == 1 else f"a text in its form{names}"
        raise QueryError(f"lookup compares {RECORD_KEY}, which is a text, with {other!r}; pass {cure}")


def _by_fields(keys: Sequence[Any], by: str, fields: Sequence[str]) -> list[list[tuple[str, str, Any]]]:
    """Return a filter for records by the fields of their keys.

    Raises:
        QueryError: A key has other fields than the table's.
    """
    if by != RECORD_KEY:
        raise QueryError(f"keys as dicts contain their columns; leave out by={by!r}")
    for key in keys:
        if not isinstance(key, Mapping) or set(key) != set(fields):
            names = ", ".join(fields) or "none: its keys are generated, use texts"
            raise QueryError(f"the key {key!r} must be a dict with the fields of the table's record key ({names})")
    if len(fields) == 1:
        return [[(fields[0], "in", [key[fields[0]] for key in keys])]]
    return [[(name, "=", key[name]) for name in fields] for key in keys]
