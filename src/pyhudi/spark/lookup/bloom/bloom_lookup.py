"""Lookup by key ranges and bloom filters, which are in the footers of base files and may be in the metadata table.

Keys are sent to the files that may contain them. There, bloom filters are checked, and the keys of a file are read only
if some incoming keys pass its filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from pyhudi.arrow.group_runs import group_runs
from pyhudi.config import options
from pyhudi.config.enums import InvalidText
from pyhudi.format.base_file.base_file_footer import in_one_order
from pyhudi.merge.base_file_readers import read_footer
from pyhudi.schema.converters.spark_json import from_spark_json
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.column_names import resolve
from pyhudi.spark.execution.local_relations import small_frame
from pyhudi.spark.execution.row_tasks import Batches, map_in_arrow
from pyhudi.spark.execution.slice_tasks import file_task_count
from pyhudi.spark.helper_columns import OLD_PARTITION, SEARCHED_FILE
from pyhudi.spark.lookup.bloom.bloom_filter_sources import BloomFilters, FilterSource, metadata_of, stored_ranges
from pyhudi.spark.lookup.scan.base_file_keys import BaseFiles, positioned_schema, read_positioned_rows
from pyhudi.spark.lookup.scan.key_columns import TEXT, KeyColumns, extra_name
from pyhudi.spark.lookup.scan.key_search import KeySearch
from pyhudi.storage import Storage
from pyhudi.write.location_columns import ROW_POSITION

_MIN_KEY, _MAX_KEY = "_pyhudi_min_key", "_pyhudi_max_key"
_WANTED, _WANTED_PARTITION = "_pyhudi_wanted", "_pyhudi_wanted_partition"
_KEY = TEXT.in_locations[0]


def bloom_locations(search: KeySearch, extra: tuple[str, ...]) -> tuple[DataFrame, KeyColumns]:
    """Find keys by bloom filters. Runs a Spark job that reads the footers of the files if files are pruned by key
    ranges that are not in the metadata table.

    Args:
        search: The search.
        extra: Columns of the base rows to return.

    Returns:
        Locations and key columns, as `scan_locations`.
    """
    rows, lookup, files = search.rows, search.lookup, search.files
    spark = rows.sparkSession
    storage = lookup.client.storage
    metadata = metadata_of(lookup)
    if lookup.opts.get_typed(options.BLOOM_PRUNE_BY_RANGES):
        stored = None if metadata is None else stored_ranges(metadata, files)
        ranges = _key_ranges(rows, storage, files) if stored is None else _ranges_frame(spark, files, *stored)
    else:
        nothing = F.lit(None).cast("string")
        frame = files.frame(spark, "file_no", "partition")
        ranges = frame.withColumns({_MIN_KEY: nothing, _MAX_KEY: nothing})
    searched = rows.select(F.col(RECORD_KEY).alias(_WANTED), F.col(PARTITION_PATH).alias(_WANTED_PARTITION))
    may_contain = (F.col(_MIN_KEY).isNull() | (F.col(_MIN_KEY) <= F.col(_WANTED))) & (
        F.col(_MAX_KEY).isNull() | (F.col(_WANTED) <= F.col(_MAX_KEY))
    )
    if not search.all_partitions:
        may_contain &= F.col(OLD_PARTITION) == F.col(_WANTED_PARTITION)
    pairs = searched.join(F.broadcast(ranges), may_contain).select(SEARCHED_FILE, _WANTED)
    tasks = lookup.opts.get_typed(options.BLOOM_INDEX_PARALLELISM)
    pairs = pairs.repartition(tasks, SEARCHED_FILE) if tasks else pairs.repartition(SEARCHED_FILE)
    fields = [StructField(extra_name(name), resolve(rows.schema, name, "ordering")[1]) for name in extra]
    out = positioned_schema(StructType([StructField(_KEY, StringType()), *fields]))
    more = from_spark_json(StructType([StructField(n, f.dataType) for n, f in zip(extra, fields, strict=True)]).json())
    source, invalid_text = FilterSource.from_files(lookup, files, metadata), lookup.invalid_text

    def check(batches: Iterable[pa.RecordBatch]) -> Batches:
        return check_files(batches, source, more, invalid_text)

    checked = map_in_arrow(pairs.sortWithinPartitions(SEARCHED_FILE), check, out)
    return checked.join(F.broadcast(files.frame(spark, "file_no", "partition")), SEARCHED_FILE), TEXT


def _key_ranges(rows: DataFrame, storage: Storage, files: BaseFiles) -> DataFrame:
    """Return number, partition, minimum and maximum key of each file. Minimum and maximum are null if the footer lacks
    them, or if they are not in byte order."""
    spark = rows.sparkSession
    out = StructType(
        [
            StructField(SEARCHED_FILE, IntegerType()),
            StructField(OLD_PARTITION, StringType()),
            StructField(_MIN_KEY, StringType()),
            StructField(_MAX_KEY, StringType()),
        ]
    )

    def footers(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            file_footers = [read_footer(storage, path) for path in batch.column(2).to_pylist()]
            ranges = [
                pa.array([getattr(f, name) for f in file_footers], pa.string()) for name in ("min_key", "max_key")
            ]
            columns = [batch.column(0), batch.column(1), *map(in_one_order, ranges)]
            yield pa.RecordBatch.from_arrays(columns, names=out.names)

    tasks = file_task_count(spark, len(files))
    paths = files.frame(spark, "file_no", "partition", "base_path").repartition(tasks)
    collected = map_in_arrow(paths, footers, out).collect()
    columns = [pa.array([row[i] for row in collected], kind) for i, kind in enumerate((pa.int32(), *3 * [pa.string()]))]
    return small_frame(spark, pa.table(columns, names=out.names))


def _ranges_frame(spark: SparkSession, files: BaseFiles, min_keys: pa.Array, max_keys: pa.Array) -> DataFrame:
    """Return the same for known ranges."""
    columns = [files.table["file_no"], files.table["partition"], min_keys, max_keys]
    return small_frame(spark, pa.table(columns, names=[SEARCHED_FILE, OLD_PARTITION, _MIN_KEY, _MAX_KEY]))


def check_files(
    batches: Iterable[pa.RecordBatch],
    source: FilterSource,
    extra: pa.Schema,
    invalid_text: InvalidText = InvalidText.FAIL,
) -> Batches:
    """Find keys in files, by their bloom filters and then by their rows.

    Memory is bounded by one batch, some filters, and the keys that pass the filter of one file.

    Args:
        batches: File numbers and keys, sorted by file number.
        source: Source of the filters.
        extra: Columns of the base rows to return.
        invalid_text: Treatment of text that is not UTF-8.

    Yields:
        Locations: key, extra columns, file number and row position.
    """
    schema = pa.schema([(RECORD_KEY, pa.string()), *extra])
    names = [_KEY, *(extra_name(name) for name in extra.names), SEARCHED_FILE, ROW_POSITION]
    filters = source.open()
    for number, parts in groupby(group_runs(_expected(batches, filters), SEARCHED_FILE), itemgetter(0)):
        bloom = filters.filter_of(number)
        keys = (part.column(_WANTED).cast(pa.string()) for _, part in parts)
        passed = pa.concat_arrays([each if bloom is None else each.filter(bloom.might_contain(each)) for each in keys])
        if not len(passed):
            continue
        for rows in read_positioned_rows(source.storage, source.paths[number].as_py(), number, schema, invalid_text):
            located = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=passed))
            if located.num_rows:
                yield located.rename_columns(names)


def _expected(batches: Iterable[pa.RecordBatch], filters: BloomFilters) -> Batches:
    """Yield the batches, after the filters of the files in each were announced."""
    for batch in batches:
        filters.expect(pc.unique(batch.column(SEARCHED_FILE)).to_pylist())
        yield batch
