"""The look-up by key ranges and bloom filters, which are in the footers of base files and may be in the metadata table.

Keys are sent to the files that may hold them; there filters are looked at, and keys of files read only if some pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from pyhudi.config import options
from pyhudi.config.enums import IndexType, InvalidText
from pyhudi.format.base_file.base_file_footer import in_one_order
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.spark_json import from_spark_json
from pyhudi.spark.execution.driver_frames import small_frame
from pyhudi.spark.keys.key_text import resolve
from pyhudi.spark.lookup.base_file_keys import FILE_NO, OLD_PARTITION, BaseFiles, KeyLookup, positioned_rows
from pyhudi.spark.lookup.bloom_filter_sources import FilterSource, metadata_of, stored_ranges
from pyhudi.spark.lookup.key_columns import TEXT, KeyColumns, extra_name
from pyhudi.spark.session_settings import shuffle_partitions
from pyhudi.storage import Storage
from pyhudi.write.location_columns import ROW
from pyhudi.write.rows.base_file_batches import read_footer

_LEAST, _MOST, _WANTED = "_pyhudi_least", "_pyhudi_most", "_pyhudi_wanted"
_KEY = TEXT.in_locations[0]
Batches = Iterator[pa.RecordBatch]


def bloom_locations(
    rows: DataFrame, lookup: KeyLookup, files: BaseFiles, extra: tuple[str, ...]
) -> tuple[DataFrame, KeyColumns]:
    """Find the batch's keys in *files*. Runs a Spark job that reads the files' footers when files are pruned by ranges
    that the metadata table does not have.

    Gives locations as `scan_locations` does.
    """
    spark = rows.sparkSession
    everywhere = lookup.index is IndexType.GLOBAL_BLOOM
    storage = lookup.client.storage
    metadata = metadata_of(lookup)
    if lookup.opts.get_typed(options.BLOOM_PRUNE_BY_RANGES):
        known = None if metadata is None else stored_ranges(metadata, files)
        ranges = _key_ranges(rows, storage, files) if known is None else _ranges_frame(spark, files, *known)
    else:
        nothing = F.lit(None).cast("string")
        frame = files.frame(spark, "file_no", "partition")
        ranges = frame.withColumns({_LEAST: nothing, _MOST: nothing})
    wanted = rows.select(F.col(RECORD_KEY).alias(_WANTED), F.col(PARTITION_PATH).alias("_pyhudi_new"))
    may_hold = (F.col(_LEAST).isNull() | (F.col(_LEAST) <= F.col(_WANTED))) & (
        F.col(_MOST).isNull() | (F.col(_WANTED) <= F.col(_MOST))
    )
    if not everywhere:
        may_hold &= F.col(OLD_PARTITION) == F.col("_pyhudi_new")
    pairs = wanted.join(F.broadcast(ranges), may_hold).select(FILE_NO, _WANTED)
    tasks = lookup.opts.get_typed(options.BLOOM_INDEX_PARALLELISM)
    pairs = pairs.repartition(tasks, FILE_NO) if tasks else pairs.repartition(FILE_NO)
    fields = [StructField(extra_name(name), resolve(rows.schema, name, "ordering")[1]) for name in extra]
    out = StructType(
        [StructField(_KEY, StringType()), *fields, StructField(FILE_NO, IntegerType()), StructField(ROW, LongType())]
    )
    more = from_spark_json(StructType([StructField(n, f.dataType) for n, f in zip(extra, fields, strict=True)]).json())
    source, invalid_text = FilterSource.of(lookup, files, metadata), lookup.invalid_text

    def check(batches: Iterable[pa.RecordBatch]) -> Batches:
        yield from check_files(batches, source, more, invalid_text)

    found = pairs.sortWithinPartitions(FILE_NO).mapInArrow(check, out)
    return found.join(F.broadcast(files.frame(spark, "file_no", "partition")), FILE_NO), TEXT


def _key_ranges(rows: DataFrame, storage: Storage, files: BaseFiles) -> DataFrame:
    """Number, partition, and least and greatest key (null when the footer does not say, or not in the order of
    bytes) of each file."""
    spark = rows.sparkSession
    out = StructType(
        [
            StructField(FILE_NO, IntegerType()),
            StructField(OLD_PARTITION, StringType()),
            StructField(_LEAST, StringType()),
            StructField(_MOST, StringType()),
        ]
    )

    def footers(batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            found = [read_footer(storage, path) for path in batch.column(2).to_pylist()]
            ranges = [pa.array([getattr(f, name) for f in found], pa.string()) for name in ("min_key", "max_key")]
            columns = [batch.column(0), batch.column(1), *map(in_one_order, ranges)]
            yield pa.RecordBatch.from_arrays(columns, names=out.names)

    tasks = max(1, min(len(files), 4 * shuffle_partitions(spark)))
    asked = files.frame(spark, "file_no", "partition", "base_path").repartition(tasks).mapInArrow(footers, out)
    found = asked.collect()
    columns = [pa.array([row[i] for row in found], kind) for i, kind in enumerate((pa.int32(), *3 * [pa.string()]))]
    return small_frame(spark, pa.table(columns, names=out.names))


def _ranges_frame(spark: SparkSession, files: BaseFiles, least: pa.Array, most: pa.Array) -> DataFrame:
    """The same, of ranges that are known."""
    columns = [files.table["file_no"], files.table["partition"], least, most]
    return small_frame(spark, pa.table(columns, names=[FILE_NO, OLD_PARTITION, _LEAST, _MOST]))


def check_files(
    batches: Iterable[pa.RecordBatch],
    source: FilterSource,
    extra: pa.Schema,
    invalid_text: InvalidText = InvalidText.FAIL,
) -> Batches:
    """The locations of keys: batches of (file number, key), sorted by file number, against the files themselves.
    ``invalid_text``: what becomes of text there that is not UTF-8.

    Memory: one batch, some filters, and per file the keys that pass its filter.
    """
    filters, storage, paths = source.open(), source.storage, source.paths
    current: int | None = None
    passed: list[pa.Array] = []
    bloom = None
    for batch in batches:
        numbers = batch.column(0).to_numpy(zero_copy_only=False)
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        filters.expect(numbers[[start for start in bounds[:-1] if start < len(numbers)]].tolist())
        for start, end in pairwise(bounds):
            if start == end:
                continue
            number = int(numbers[start])
            if number != current:
                if current is not None:
                    yield from _exact(storage, paths[current].as_py(), current, passed, extra, invalid_text)
                current, passed = number, []
                bloom = filters.of(number)
            keys = batch.column(1).slice(start, end - start)
            passed.append(keys if bloom is None else keys.filter(bloom.might_contain(keys)))
    if current is not None:
        yield from _exact(storage, paths[current].as_py(), current, passed, extra, invalid_text)


def _exact(
    storage: Storage, path: str, number: int, passed: list[pa.Array], extra: pa.Schema, invalid_text: InvalidText
) -> Batches:
    wanted = pa.concat_arrays([keys.cast(pa.string()) for keys in passed])
    if len(wanted) == 0:
        return
    schema = pa.schema([(RECORD_KEY, pa.string()), *extra])
    names = [_KEY, *(extra_name(name) for name in extra.names), FILE_NO, ROW]
    for batch in positioned_rows(storage, path, number, schema, invalid_text):
        found = batch.filter(pc.is_in(batch.column(0), value_set=wanted))
        if found.num_rows:
            yield found.rename_columns(names)
