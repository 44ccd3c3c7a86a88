"""Options specific to pyhudi (``pyhudi.*``). Settings of object stores are ``pyhudi.storage.*``."""

from __future__ import annotations

from pyhudi.config.enums import Fsync, InvalidText, PartitionValues, ReadEngine
from pyhudi.config.option import choice, flag, integer, optional_integer, optional_text

PARQUET_CODEC_LEVEL = optional_integer(
    "pyhudi.parquet.compression.level", "Level of the Parquet codec. By default, the codec's own.", minimum=-100
)
INDEX_BROADCAST_ROWS = integer(
    "pyhudi.index.broadcast.rows",
    1_000_000,
    "Number of incoming rows up to which their keys are broadcast to all executors, so that the keys of the table "
    "are not shuffled. Above it, both are shuffled by key.",
)
INDEX_TASK_ROWS = integer(
    "pyhudi.index.task.rows",
    2_000_000,
    "With the indexes SIMPLE and BLOOM: number of incoming rows of a partition up to which one task looks up their "
    "keys and writes them, if partitions are small and of similar size. 0: keys are always looked up before rows are "
    "shuffled.",
)
READ_ENGINE = choice(
    "pyhudi.read.engine",
    ReadEngine.AUTO,
    "Reader of base files on Spark: Spark itself, or pyhudi's Arrow reader on the executors. auto: Spark where "
    "possible.",
)
READ_INVALID_TEXT = choice(
    "pyhudi.read.invalid.text",
    InvalidText.FAIL,
    "Treatment of text that is not valid UTF-8 in files of other writers: fail, or replace each invalid byte by "
    "U+FFFD. For this, base files are read by pyhudi's Arrow reader; operations that rewrite files store the "
    "replaced text. fail does not detect invalid text in base files without logs that Spark reads natively.",
)
READ_PUSHED_FILTERS = flag(
    "pyhudi.read.pushed.filters",
    False,
    "Python data source of Spark 4.1 and newer: prune files and rows by the filters that Spark pushes down. Spark "
    "then requires spark.sql.python.filterPushdown.enabled and fails if it is not set.",
)
SQL_JOIN_PRUNING_MIN_BYTES = integer(
    "pyhudi.sql.join.pruning.min.bytes",
    64 * 1024 * 1024,
    "Setting of the Spark session: size in bytes of a table from which SQL prunes its files by the keys of a "
    "small table in a join.",
)
READ_LOG_CACHE_FOLDER = optional_text(
    "pyhudi.read.log.cache.folder",
    "Merge-on-read queries on Spark: folder for Parquet files with the merged rows of log files, which Spark reads in "
    "one scan with the base files from the second query of a snapshot on. Driver and executors must access the folder "
    "at the same address (an object store, a shared mount). Default: a temporary folder if Spark runs in local mode, "
    "otherwise each query merges the log files. The files are removed when the process ends.",
)
READ_LOG_CACHE_MAX_LOG_BYTES = integer(
    "pyhudi.read.log.cache.max.log.bytes",
    256 * 1024 * 1024,
    "Maximum total size in bytes of the log files that loading a merge-on-read table merges into "
    "pyhudi.read.log.cache.folder. If the logs of a query are larger, the query merges them.",
)
READ_LOG_CACHE_SIZE = integer(
    "pyhudi.read.log.cache.size",
    4 * 1024 * 1024 * 1024,
    "Maximum size in bytes of the files in pyhudi.read.log.cache.folder. If the folder is full, files of older "
    "snapshots that no query has used for an hour are removed, and queries of other snapshots merge the logs "
    "themselves. 0: no cache.",
)
READ_PARTITION_VALUES = choice(
    "pyhudi.read.partition.values",
    PartitionValues.AUTO,
    "Source of partition columns. The values of the path take precedence, as in Apache Hudi; path and auto differ "
    "in how Spark obtains the values of a single partition. file: the values in files (which differ for records "
    "that stayed in their old partition), and the actual addresses of files, without partition pruning by paths.",
)

FILL_RATIO = integer(
    "pyhudi.fill.ratio",
    16,
    "Merge-on-read tables: new records go to a small base file only if its size is at most this multiple of "
    "theirs (files of up to 4 MB always qualify), otherwise to a new one. 0: always, as in Apache Hudi.",
)
COMPACTION_ABANDONED_MINUTES = integer(
    "pyhudi.compaction.abandoned.minutes",
    24 * 60,
    "Minutes without activity after which a compaction started by another program is considered failed and its "
    "plan is executed again. Apache Hudi before 1.2 writes no heartbeat for compactions, so activity is judged by "
    "the inflight file and the markers.",
)
STORAGE_FSYNC = choice(
    "pyhudi.storage.fsync",
    Fsync.ALL,
    "Files that a write to a local file system syncs to disk, to survive a power failure: all files, only "
    "timeline and other small files (commit: after a failure, a commit may refer to empty data files), or none.",
    any_case=False,
)
