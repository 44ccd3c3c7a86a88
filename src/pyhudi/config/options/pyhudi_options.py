"""Options of our own (``pyhudi.*``), which Apache Hudi has not. Settings of object stores are ``pyhudi.storage.*``."""

from __future__ import annotations

from pyhudi.config.enums import Fsync, InvalidText, PartitionValues, ReadEngine
from pyhudi.config.option import choice, flag, integer, maybe_integer, maybe_text

PARQUET_CODEC_LEVEL = maybe_integer(
    "pyhudi.parquet.compression.level", "Level of the parquet codec; the codec's own when not given.", least=-100
)
INDEX_BROADCAST_ROWS = integer(
    "pyhudi.index.broadcast.rows",
    1_000_000,
    "Up to this many incoming rows their keys are sent to every executor to be looked for, so that the table's keys "
    "stay where they are; above it both are shuffled by key.",
)
INDEX_TASK_ROWS = integer(
    "pyhudi.index.task.rows",
    2_000_000,
    "With the index SIMPLE, up to this many incoming rows of a partition go to one task, which looks their keys up and "
    "writes them, if the partitions are small and even enough for it; 0: keys are looked up before rows are sent.",
)
READ_ENGINE = choice(
    "pyhudi.read.engine",
    ReadEngine.AUTO,
    "Who reads base files under Spark: Spark itself, or our Arrow reader on the executors; auto: Spark where it can.",
)
READ_INVALID_TEXT = choice(
    "pyhudi.read.invalid.text",
    InvalidText.FAIL,
    "What becomes of text in files of other writers that is not UTF-8: fail, or replace such bytes by U+FFFD. For that "
    "base files are read by our Arrow reader; what rewrites files stores what it has read. At base files without "
    "logs that Spark reads itself, fail does not look.",
)
READ_PUSHED_FILTERS = flag(
    "pyhudi.read.pushed.filters",
    False,
    "Python data source of Spark 4.1 and newer: leave out files and rows by the filters that Spark tells it. Spark "
    "then wants spark.sql.python.filterPushdown.enabled to be set, and fails where it is not.",
)
SQL_JOIN_PRUNING_MIN_BYTES = integer(
    "pyhudi.sql.join.pruning.min.bytes",
    64 * 1024 * 1024,
    "Setting of the Spark session: bytes of the files of a table from which SQL leaves out files of it by the keys of "
    "a small table that it is joined with.",
)
READ_LOG_CACHE_FOLDER = maybe_text(
    "pyhudi.read.log.cache.folder",
    "Merge-on-read queries on Spark: folder for Parquet files with the merged rows of log files, which Spark reads in "
    "one scan with the base files from the second query of a snapshot on. Driver and executors must reach the folder "
    "at the same address (an object store, a shared mount). Default: a temporary folder if Spark runs in local mode, "
    "otherwise each query merges the log files. The files are removed when the process ends.",
)
READ_LOG_CACHE_MAX_LOG_BYTES = integer(
    "pyhudi.read.log.cache.max.log.bytes",
    256 * 1024 * 1024,
    "Bytes of log files up to which loading a merge-on-read table merges them into pyhudi.read.log.cache.folder. If "
    "the logs of a query are larger in total, the query merges them.",
)
READ_LOG_CACHE_SIZE = integer(
    "pyhudi.read.log.cache.size",
    4 * 1024 * 1024 * 1024,
    "Bytes of files in pyhudi.read.log.cache.folder. If the folder is full, files of older snapshots that no query has "
    "used for an hour are removed, and queries of other snapshots merge the logs themselves. 0: no cache.",
)
READ_PARTITION_VALUES = choice(
    "pyhudi.read.partition.values",
    PartitionValues.AUTO,
    "Where partition columns come from. The path's values count, as in Apache Hudi; path and auto differ in how Spark "
    "gets at those of a single partition. file: the values in files (others, of records kept in their old "
    "partition), and the real addresses of files, but no partitions are left out by their paths.",
)

FILL_RATIO = integer(
    "pyhudi.fill.ratio",
    16,
    "Merge-on-read tables: new records go to a small base file only if it is at most so many times as large as they "
    "are (files of up to 4 MB always are), else to a new one; 0: always, as in Apache Hudi.",
)
COMPACTION_ABANDONED_MINUTES = integer(
    "pyhudi.compaction.abandoned.minutes",
    24 * 60,
    "Minutes of silence after which a compaction that another program has begun counts as dead, and its plan is taken "
    "up: those of Apache Hudi before 1.2 have no heartbeat. Signs of life are its inflight file and its markers.",
)
STORAGE_FSYNC = choice(
    "pyhudi.storage.fsync",
    Fsync.ALL,
    "What a write to a local file system waits for to be on the disk, so that it outlives a power failure: all files, "
    "the timeline's and other small ones only (commit: a commit may be left over empty data files), or none.",
    any_case=False,
)
