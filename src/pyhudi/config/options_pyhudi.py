"""Options of our own (``pyhudi.*``), which Apache Hudi has not. Those of the storage are ``pyhudi.storage.*``."""

from __future__ import annotations

from pyhudi.config.option import choice, integer, maybe_integer
from pyhudi.config.values import PartitionValues, ReadEngine

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
READ_PARTITION_VALUES = choice(
    "pyhudi.read.partition.values",
    PartitionValues.AUTO,
    "Where partition columns come from under Spark when path and file agree: paths let Spark skip whole files, files "
    "show the real addresses of files; auto: paths, where there are several partitions.",
)

FILL_RATIO = integer(
    "pyhudi.fill.ratio",
    16,
    "Merge-on-read tables: new records go to a small base file only if it is at most so many times as large as they "
    "are (files of up to 4 MB always are), else to a new one; 0: always, as in Apache Hudi.",
)
