"""Reads of files by Spark's own readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import reduce

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from pyhudi.spark.read.base_files.partition_folders import MOUNTS, Folders, allow_mounts
from pyhudi.spark.session_settings import session_setting

_GLOB_CHARACTERS = re.compile(r"([\\{}\[\]*?])")
_GLOB_PATHS = "__globPaths__"
_LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_IGNORE_LOCALITY = "spark.sql.sources.ignoreDataLocality"
_LISTED_BY_THE_DRIVER = 100_000
_SPARKS_OWN_THRESHOLD = 32
# A lookup that misses keys would insert them twice, and a service that misses rows would lose them. Options of a reader
# override the session's spark.sql.files.ignoreCorruptFiles and ignoreMissingFiles.
_NO_FILE_IS_SKIPPED = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
# Hudi's writers use the proleptic Gregorian calendar, but not all of them record this in the footer as Spark does.
_PARQUET_OPTIONS = {"mergeSchema": "false", "datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}


def read_files(spark: SparkSession, schema: StructType, uris: Sequence[str]) -> DataFrame:
    """Return the rows of parquet and ORC files. Columns that a file lacks are null."""
    return FileReader(spark, schema).read(uris)


class FileReader:
    """Reader of several groups of files like :func:`read_files`, with shared options.

    With ``folders``, Spark parses the values of columns from their names, and prunes by them.
    """

    def __init__(self, spark: SparkSession, schema: StructType, folders: Folders | None = None) -> None:
        self._spark = spark
        self._schema = schema
        self._options = {} if folders is None else {"basePath": folders.base_path}
        if folders is not None and folders.mounted:
            allow_mounts(spark)
        self._readers: dict[tuple[str, bool], DataFrameReader] = {}

    def read(self, uris: Sequence[str]) -> DataFrame:
        """Return the rows of some files. Thread-safe."""
        with read_settings(self._spark, len(uris), uris[0]):
            parts = [rows for kind, lot in _by_kind(uris) for rows in self._read(kind, lot)]
            if is_remote():
                for rows in parts:
                    _ = rows.schema  # under Connect nothing is evaluated before it is requested
        return reduce(lambda a, b: a.unionByName(b), parts)

    def _read(self, kind: str, uris: Sequence[str]) -> Iterator[DataFrame]:
        """Read files whose names may have characters of globs.

        Escaped characters still make a glob of a path, and Hadoop cannot expand globs of names with colons. Those are
        read one by one without globs: Spark returns all paths for each path that it does not expand.
        """
        escaped = [_escape_glob(uri) for uri in uris if not _breaks_globs(uri)]
        if escaped:
            yield self._reader(kind, globs=True).load(escaped)
        for uri in filter(_breaks_globs, uris):
            yield self._reader(kind, globs=False).load(uri)

    def _reader(self, kind: str, *, globs: bool) -> DataFrameReader:
        if (kind, globs) not in self._readers:
            options = {**_NO_FILE_IS_SKIPPED, _GLOB_PATHS: str(globs).lower(), **self._options}
            if kind == "parquet":
                options |= _PARQUET_OPTIONS
            self._readers[kind, globs] = self._spark.read.format(kind).schema(self._schema).options(**options)
        return self._readers[kind, globs]


def _by_kind(uris: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the formats of files, with the files."""
    orc = [u for u in uris if u.endswith(".orc")]
    parquet = [u for u in uris if not u.endswith(".orc")]
    return [(kind, lot) for kind, lot in (("parquet", parquet), ("orc", orc)) if lot]


def _breaks_globs(uri: str) -> bool:
    """Return True for an address that is a glob to Spark and that Hadoop cannot expand."""
    return ":" in uri.partition(":")[2] and _GLOB_CHARACTERS.search(uri) is not None


def _escape_glob(uri: str) -> str:
    """Return the address with the characters escaped that Spark's path globs interpret."""
    return _GLOB_CHARACTERS.sub(r"\\\1", uri)


def is_missing_file_system(error: Exception) -> bool:
    """Return True for the error that Spark's Hadoop has no file system for the scheme."""
    text = str(error)
    return "No FileSystem for scheme" in text or ("ClassNotFoundException" in text and "FileSystem" in text)


def is_mount_error(error: Exception) -> bool:
    """Return True for the error that a mounted file was not found. ``viewfs`` reports every failure of the underlying
    file system in this way."""
    return f"Path does not exist: {MOUNTS}" in str(error)


@contextmanager
def read_settings(spark: SparkSession, files: int, one: str) -> Iterator[None]:
    """Return a context manager with the session settings for :func:`read_files` of some files, ``one`` of which is
    given; around several calls the settings are changed only once.

    Spark requests the status of each file, above 32 files by a job with a task per file. For local files
    that takes seconds where the driver takes milliseconds. It also requests the block locations of each file, for which
    Hadoop's local file systems start a process; no supported storage has block locations.
    """
    with ExitStack() as stack:
        stack.enter_context(session_setting(spark, _IGNORE_LOCALITY, "true"))
        if one.startswith("file:") and _listed_by_a_job(spark, files):
            stack.enter_context(session_setting(spark, _LISTING_THRESHOLD, str(_LISTED_BY_THE_DRIVER)))
        yield


def _listed_by_a_job(spark: SparkSession, files: int) -> bool:
    """Return True if Spark would start a job to list a number of files that the driver lists in less time."""
    if not _SPARKS_OWN_THRESHOLD < files <= _LISTED_BY_THE_DRIVER:
        return False
    threshold = spark.conf.get(_LISTING_THRESHOLD)
    return threshold is not None and threshold.isdigit() and int(threshold) < files
