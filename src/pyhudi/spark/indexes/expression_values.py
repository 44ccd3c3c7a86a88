"""Expressions of expression indexes as Spark functions, and their values in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from pyhudi.arrow.group_runs import by_group
from pyhudi.arrow.ipc import table_from_bytes, table_to_bytes
from pyhudi.config.enums import InvalidText
from pyhudi.errors import ConfigError
from pyhudi.format import bloom_filter
from pyhudi.format.base_file.column_bounds import BoundsRecorder, bounds_type, flat_schema
from pyhudi.metadata.indexes.expression_index_definition import Expression, ExpressionIndex
from pyhudi.metadata.metadata_layout import BLOOM_FILTERS
from pyhudi.metadata.writer.file_statistics import rows_of_file
from pyhudi.schema.converters.spark_arrow import spark_arrow_schema
from pyhudi.spark.column_names import quoted
from pyhudi.spark.execution.local_relations import spread_frame
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.slice_tasks import file_task_count
from pyhudi.spark.read.pruning.overridden_functions import overridden_functions
from pyhudi.spark.spark_errors import task_errors
from pyhudi.spark.spark_types import spark_schema
from pyhudi.storage import Storage

_NUMBER, _DATA = "number", "data"
_BYTES_A_ROW = 4 * 1024 * 1024
"""Approximate size in bytes of the chunks in which task results are sent to the driver."""
FILTER_TYPE = pa.struct([("type", pa.string()), ("text", pa.string())])
"""Bloom filter: its type and its base64 text, which is null if some of the values are null."""
_BLOOM_DEFAULTS = {
    "filtertype": bloom_filter.DYNAMIC,
    "numentries": str(bloom_filter.DEFAULT_ENTRIES),
    "fpp": str(bloom_filter.DEFAULT_FPP),
    "maxentries": str(bloom_filter.DEFAULT_MAX_ENTRIES),
}


def expression_column(expression: Expression) -> Column:
    """Return the expression as a Spark column."""
    column = sf.col(quoted(expression.column.split(".")))
    return _COLUMNS[expression.function](column, *expression.arguments)


def check_expression(spark: SparkSession, expression: Expression, columns: pa.Schema) -> None:
    """Check that Spark can compute an expression over a table's columns.

    Raises:
        ConfigError: Spark cannot compute it.
    """
    field = columns.field(expression.column)
    overridden = overridden_functions(spark, [expression.function])
    if overridden:
        raise ConfigError(
            f"cannot compute {expression}: the session defines a function of its own named {overridden[0]}; use "
            "another session (spark.newSession())"
        )
    try:
        _ = spark.createDataFrame([], spark_schema(pa.schema([field]))).select(expression_column(expression)).schema
    except AnalysisException as e:
        raise ConfigError(f"cannot compute {expression} for a column of type {field.type}: {e}") from e


def _with_format(function: Callable[..., Column]) -> Callable[..., Column]:
    return lambda column, form: function(column) if form is None else function(column, form)


def _trim(function: str) -> Callable[..., Column]:
    return lambda column, letters: sf.call_function(function, sf.lit(letters), column)


_COLUMNS: Mapping[str, Callable[..., Column]] = {
    "identity": lambda column: column,
    "year": sf.year,
    "month": sf.month,
    "day": sf.dayofmonth,
    "hour": sf.hour,
    "date_format": sf.date_format,
    "from_unixtime": sf.from_unixtime,
    "unix_timestamp": sf.unix_timestamp,
    "to_date": _with_format(sf.to_date),
    "to_timestamp": _with_format(sf.to_timestamp),
    "date_add": sf.date_add,
    "date_sub": sf.date_sub,
    "lower": sf.lower,
    "upper": sf.upper,
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "length": sf.length,
    "substring": sf.substring,
    "regexp_replace": sf.regexp_replace,
    "regexp_extract": sf.regexp_extract,
}


def summarize_files(
    spark: SparkSession,
    storage: Storage,
    files: pa.Table,
    indexes: Sequence[ExpressionIndex],
    *,
    columns: pa.Schema,
    invalid_text: InvalidText = InvalidText.FAIL,
) -> pa.Table:
    """Compute the index entries of each file: a column ``number``, the row of the file in ``files`` (``path`` and
    ``kind``), and one column for each index: the bounds of the values (as for a column in
    `pyhudi.format.base_file.column_bounds.bounds_type`; ``values`` is the row count), or a bloom filter (FILTER_TYPE).
    Files without rows are omitted. Runs a Spark job, in the time zone and with the other settings of its session.

    ``columns`` are the columns of the table.
    """
    sources = flat_schema(columns, dict.fromkeys(index.expression.column for index in indexes))
    top = spark_arrow_schema(pa.schema(map(columns.field, dict.fromkeys(n.partition(".")[0] for n in sources.names))))
    kinds = [index.expression.type_of(sources.field(index.expression.column).type) for index in indexes]
    read_schema = spark_schema(pa.schema([pa.field(_NUMBER, pa.int32()), *top]))
    count = files.num_rows
    numbered = files.select(["path", "kind"]).add_column(0, _NUMBER, pa.array(range(count), pa.int32()))
    tasks = file_task_count(spark, count)
    rows = map_in_arrow(spread_frame(spark, numbered, tasks), _FileRows(storage, top, invalid_text), read_schema)
    values = rows.select(
        _NUMBER, *(expression_column(index.expression).alias(f"e{i}") for i, index in enumerate(indexes))
    )
    with task_errors():
        done = map_in_arrow(values, _Summaries(indexes, kinds), f"{_DATA} binary").collect()
    empty = pa.schema(
        [(_NUMBER, pa.int32()), *((i.partition, _entry_type(i, k)) for i, k in zip(indexes, kinds, strict=True))]
    )
    return pa.concat_tables([empty.empty_table(), *(table_from_bytes(bytes(row[0])).cast(empty) for row in done)])


@dataclass(frozen=True, slots=True)
class _FileRows:
    """Task that reads files: their number, and the columns of which expressions are computed.

    Attributes:
        storage: Storage of the table.
        columns: The columns.
        invalid_text: Treatment of text that is not UTF-8.
    """

    storage: Storage
    columns: pa.Schema
    invalid_text: InvalidText

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        schema = pa.schema([pa.field(_NUMBER, pa.int32()), *self.columns])
        for batch in batches:
            for number, path, kind in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for rows in rows_of_file(self.storage, path, kind, self.columns, self.invalid_text):
                    numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
                    table = pa.Table.from_arrays([numbers, *rows.columns], schema=schema)
                    yield from table.combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class _Summaries:
    """Task that summarizes the values of each file.

    Attributes:
        indexes: The indexes.
        kinds: Types of the values of each.
    """

    indexes: Sequence[ExpressionIndex]
    kinds: Sequence[pa.DataType]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        waiting: list[pa.Table] = []
        size = 0
        for number, rows in by_group(batches, _NUMBER):
            waiting.append(self._summarized(number, rows))
            size += waiting[-1].nbytes
            if size >= _BYTES_A_ROW:
                yield _packed_row(waiting)
                waiting, size = [], 0
        if waiting:
            yield _packed_row(waiting)

    def _summarized(self, number: int, rows: pa.Table) -> pa.Table:
        """Return the row of one file."""
        entries = {
            index.partition: _summary(index, kind, rows[f"e{i}"].combine_chunks())
            for i, (index, kind) in enumerate(zip(self.indexes, self.kinds, strict=True))
        }
        return pa.table({_NUMBER: pa.array([number], pa.int32()), **entries})


def _packed_row(parts: Sequence[pa.Table]) -> pa.RecordBatch:
    data = table_to_bytes(pa.concat_tables(parts).combine_chunks())
    return pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], names=[_DATA])


def _entry_type(index: ExpressionIndex, data_type: pa.DataType) -> pa.DataType:
    """Return the type of an index entry for a file."""
    if index.kind == BLOOM_FILTERS:
        return FILTER_TYPE
    return bounds_type(pa.schema([(_DATA, data_type)])).field(0).type


def _summary(index: ExpressionIndex, data_type: pa.DataType, values: pa.Array) -> pa.Array:
    """Return the index entry for the values of a file (one row)."""
    if index.kind == BLOOM_FILTERS:
        if values.null_count:
            return pa.array([{"type": None, "text": None}], FILTER_TYPE)
        options = {**_BLOOM_DEFAULTS, **dict(index.bloom)}
        texts = values.cast(pa.string())
        entries, max_entries = int(options["numentries"]), int(options["maxentries"])
        built = bloom_filter.BloomFilter.build(
            texts, entries, float(options["fpp"]), max_entries, options["filtertype"]
        )
        return pa.StructArray.from_arrays(
            [pa.array([built.kind]), pa.array([built.serialize()])], fields=list(FILTER_TYPE)
        )
    recorder = BoundsRecorder(pa.schema([(_DATA, data_type)]))
    recorder.add(pa.table([values.cast(data_type)], names=[_DATA]))
    return recorder.finish().field(0)
