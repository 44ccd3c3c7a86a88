"""Options of table services after a write, and of compaction and log compaction."""

from __future__ import annotations

from pyhudi.config.enums import CompactionTrigger
from pyhudi.config.option import choice, flag, integer, optional_integer, optional_text, text

TABLE_SERVICES_ENABLED = flag("hoodie.table.services.enabled", True, "If true, a write may run table services.")
FAIL_ON_INLINE_SERVICE_ERROR = flag(
    "hoodie.fail.writes.on.inline.table.service.exception",
    True,
    "If true, an error in a table service after a commit is raised, if false, it is logged. The write stays "
    "committed in both cases.",
)

COMPACT_INLINE = flag(
    "hoodie.compact.inline",
    False,
    "If true, a write runs compaction after its commit if it is due. If not set, writes to merge-on-read tables "
    "do so unless an option that leaves compaction to another process is true.",
)
COMPACT_ASYNC = flag(
    "hoodie.datasource.compaction.async.enable",
    True,
    "If true, compaction is left to another process. Streaming writes do so by default.",
)
COMPACT_SCHEDULE_INLINE = flag(
    "hoodie.compact.schedule.inline",
    False,
    "If true, a write plans a compaction after its commit; another process executes it.",
)
COMPACT_TRIGGER = choice(
    "hoodie.compact.inline.trigger.strategy",
    CompactionTrigger.NUM_COMMITS,
    "Trigger of compaction.",
)
COMPACT_MAX_DELTA_COMMITS = integer(
    "hoodie.compact.inline.max.delta.commits", 5, "Number of delta commits after which compaction is due.", minimum=1
)
COMPACT_MAX_DELTA_SECONDS = integer(
    "hoodie.compact.inline.max.delta.seconds",
    3600,
    "Seconds since the last compaction, or since the first delta commit, after which compaction is due.",
    minimum=1,
)
COMPACTION_STRATEGY = text(
    "hoodie.compaction.strategy",
    "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
    "Strategies that select the file slices to compact, by Apache Hudi's class names. Several are separated by "
    "commas and applied one after the other.",
)
COMPACTION_TARGET_IO = integer(
    "hoodie.compaction.target.io", 512_000, "Approximate limit in megabytes on what one compaction reads and writes."
)
COMPACTION_LOG_SIZE_THRESHOLD = integer(
    "hoodie.compaction.logfile.size.threshold", 0, "Minimum size in bytes of the log files of a compacted file slice."
)
COMPACTION_LOG_NUM_THRESHOLD = integer(
    "hoodie.compaction.logfile.num.threshold", 0, "Minimum number of log files of a compacted file slice."
)
COMPACTION_DAY_PARTITIONS = integer(
    "hoodie.compaction.daybased.target.partitions", 10, "Number of days whose partitions day-based strategies select."
)
COMPACTION_PARTITION_REGEX = optional_text(
    "hoodie.compaction.partition.path.regex",
    "Regular expression for the partition paths that PartitionRegexBasedCompactionStrategy compacts.",
)
COMPACTION_MEMORY = optional_integer(
    "hoodie.memory.compaction.max.size",
    "Memory in bytes for the log records of one file slice during compaction before they are spilled to disk. "
    "Default: hoodie.memory.merge.max.size.",
)
LOG_COMPACTION_INLINE = flag(
    "hoodie.log.compaction.inline", False, "If true, a write runs log compaction after its commit."
)
LOG_COMPACTION_BLOCKS_THRESHOLD = integer(
    "hoodie.log.compaction.blocks.threshold",
    5,
    "Minimum number of log blocks of a file slice, and of delta commits of the table, for a log compaction.",
    minimum=1,
)
INCREMENTAL_SERVICES = flag(
    "hoodie.table.services.incremental.enabled",
    True,
    "If true, plans list the partitions that they omit, so that the next plan of Apache Hudi considers them again.",
)
