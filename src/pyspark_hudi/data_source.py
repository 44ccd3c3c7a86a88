"""The data source and its reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition  # type: ignore[import-not-found,unused-ignore]
from pyspark.sql.types import StructType

from pyhudi.config import Options, options
from pyhudi.config.misspelled_options import refuse_misspelled_query
from pyhudi.errors import QueryError, UnsupportedTableError
from pyhudi.read.execution.arrow_scan import slice_readers
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.query.query import Query
from pyhudi.read.query.table_location import open_table
from pyhudi.read.scan_plan import ScanPlan
from pyhudi.read.scan_planner import plan_scan
from pyhudi.schema.converters.spark_arrow import as_spark_arrow
from pyhudi.spark.execution.slice_tasks import piece_numbers
from pyhudi.spark.spark_types import spark_schema
from pyhudi.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot, with_snapshot
from pyspark_hudi.append_checks import ACTIVATE
from pyspark_hudi.append_job import prepare_append
from pyspark_hudi.append_writer import HudiAppendWriter
from pyspark_hudi.pushed_filters import term_of

_CURE = f"{ACTIVATE}: this requires Spark jobs, which a data source cannot run"


class HudiDataSource(DataSource):  # type: ignore[misc,unused-ignore]
    """``format("hudi")`` of Spark 4 without a call of pyhudi. Options are Apache Hudi's read options."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "hudi"

    def schema(self) -> StructType:
        """Return the columns of the query."""
        return spark_schema(_plan(self.options).output_schema)

    def reader(self, schema: StructType) -> HudiDataSourceReader:
        """Return the reader of a batch query, with the columns that the DataFrame has."""
        given = dict(self.options)
        wants = Options.parse(given).get_typed(options.READ_PUSHED_FILTERS)
        return FilteringReader(given, schema) if wants else HudiDataSourceReader(given, schema)

    def writer(self, schema: StructType, overwrite: bool) -> HudiAppendWriter:
        """Start an append and return its writer.

        Raises:
            UnsupportedTableError: The operation is not a bulk insert; nothing is changed.
            HudiError: The options or columns do not match the table; nothing is changed.
        """
        if overwrite:
            raise UnsupportedTableError(
                f"format('hudi') in a session without pyhudi only appends; to overwrite, {_CURE}"
            )
        return HudiAppendWriter(prepare_append(self.options, schema).begin())

    def streamReader(self, schema: StructType) -> Any:  # noqa: ARG002, N802
        """Refuse to stream.

        Raises:
            UnsupportedTableError: Always.
        """
        raise UnsupportedTableError(
            f"format('hudi') in a session without pyhudi does not support reading streams; {_CURE}"
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: ARG002, N802
        """Refuse to stream.

        Raises:
            UnsupportedTableError: Always.
        """
        raise UnsupportedTableError(
            f"format('hudi') in a session without pyhudi does not support writing streams; {_CURE}"
        )


@dataclass
class SlicesPartition(InputPartition):  # type: ignore[misc,unused-ignore]
    """File slices that one task reads: the plan restricted to these slices."""

    plan: ScanPlan
    storage: Storage


class HudiDataSourceReader(DataSourceReader):  # type: ignore[misc,unused-ignore]
    """Reads the file slices of a query, in tasks of similar size in bytes.

    Spark takes the columns of batches by position, and calls the reader long after the DataFrame was loaded, or for the
    columns of ``DataFrameReader.schema``.

    Args:
        given: Options of the query.
        columns: Columns of the DataFrame.
    """

    def __init__(self, given: Mapping[str, str], columns: StructType) -> None:
        self._options = given
        self._columns = columns
        self._filter: RowFilter | None = None

    def partitions(self) -> list[SlicesPartition]:
        """Plan the query. Return a part of it per task.

        Raises:
            QueryError: The table does not have the columns of the DataFrame, or has them with other types.
        """
        table, plan = _planned(self._options, self._filter, self._columns.names)
        _check_types(self._columns, spark_schema(plan.output_schema))
        return [SlicesPartition(plan.select_slices(pa.array(n)), table.storage) for n in piece_numbers(plan.tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a part."""
        if not isinstance(partition, SlicesPartition):
            return  # For a query without file slices Spark reads a part of its own.
        for work in slice_readers(partition.plan, partition.storage):
            yield from map(as_spark_arrow, work())


class FilteringReader(HudiDataSourceReader):
    """A reader that accepts filters. Spark refuses it if filter pushdown is disabled."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802
        """Prune files and rows by the supported filters; Spark evaluates all of them again."""
        terms = [term for term in map(term_of, filters) if term is not None]
        self._filter = RowFilter.parse([tuple(term) for term in terms]) if terms else None
        return filters


def _plan(given: Mapping[str, str]) -> ScanPlan:
    return _planned(given, None)[1]


def _check_types(columns: StructType, current: StructType) -> None:
    """Refuse columns of a DataFrame whose types are not those of the table."""
    types = [(field.dataType.simpleString(), current[field.name].dataType.simpleString()) for field in columns.fields]
    changed = [
        f"{name} {one} instead of {now}" for name, (one, now) in zip(columns.names, types, strict=True) if one != now
    ]
    if changed:
        raise QueryError(
            f"the DataFrame has columns with other types than the table: {', '.join(changed)}; load the table again, "
            "without .schema(…), and cast its columns"
        )


def _planned(
    source: Mapping[str, str], row_filter: RowFilter | None, columns: Sequence[str] | None = None
) -> tuple[TableSnapshot, ScanPlan]:
    given = dict(source)
    path = given.pop("path", None)
    if path is None:
        raise QueryError("format('hudi') requires the path of a table: .load(path)")
    refuse_misspelled_query(given)
    settings = Options.parse(given)
    client, subpath = open_table(path, settings)

    def plan(table: TableSnapshot) -> ScanPlan:
        query = replace(Query.from_options(settings, table.config), subpath=subpath)
        if query.changes:
            raise QueryError(f"format('hudi') in a session without pyhudi does not support change data; {_CURE}")
        return plan_scan(table, query, columns=columns, filter=row_filter, opts=settings)

    return with_snapshot(partial(TableSnapshot.load, client), plan)
