"""Files handed to Spark's own readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from pyhudi.spark.settings import session_setting

_GLOB_CHARACTERS = re.compile(r"([\\{}\[\]*?])")
_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTED_BY_THE_DRIVER = 10_000


def read_files(
    spark: SparkSession, schema: StructType, uris: Sequence[str], *, base_path: str | None = None
) -> DataFrame:
    """The rows of parquet and ORC files. Columns that a file lacks are null.

    With ``base_path`` Spark takes the values of columns from hive-style folders below it, and prunes by them.
    """
    orc = [u for u in uris if u.endswith(".orc")]
    parquet = [u for u in uris if not u.endswith(".orc")]
    parts = [
        _read(spark, kind, schema, paths, base_path) for kind, paths in (("parquet", parquet), ("orc", orc)) if paths
    ]
    return reduce(lambda a, b: a.unionByName(b), parts)


def _read(spark: SparkSession, kind: str, schema: StructType, uris: Sequence[str], base_path: str | None) -> DataFrame:
    reader = spark.read.format(kind).schema(schema)
    if kind == "parquet":
        # Hudi's writers keep the proleptic Gregorian calendar, but not all of them sign the footer as Spark does
        reader = reader.option("datetimeRebaseMode", "CORRECTED").option("int96RebaseMode", "CORRECTED")
        reader = reader.option("mergeSchema", "false")
    if base_path is not None:
        reader = reader.option("basePath", escape_glob(base_path))
    with _listed_by_the_driver(spark, len(uris)):
        rows = reader.load([escape_glob(uri) for uri in uris])
        _ = rows.schema  # under Connect nothing happens before it is asked for
        return rows


def escape_glob(uri: str) -> str:
    """The address with those characters escaped that Spark's path globs take for patterns."""
    return _GLOB_CHARACTERS.sub(r"\\\1", uri)


@contextmanager
def _listed_by_the_driver(spark: SparkSession, files: int) -> Iterator[None]:
    """Spark asks for the status of each file it is given, above 32 of them by a job with a task per file, which takes
    seconds where the driver takes milliseconds."""
    before = spark.conf.get(_LISTING_THRESHOLD, None)
    if files > _LISTED_BY_THE_DRIVER or before is None or not before.isdigit() or int(before) >= files:
        yield
        return
    with session_setting(spark, _LISTING_THRESHOLD, str(_LISTED_BY_THE_DRIVER)):
        yield
