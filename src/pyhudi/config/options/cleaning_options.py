"""Options of cleaning, archival and the time to live of partitions."""

from __future__ import annotations

from pyhudi.config.enums import CleanPolicy, CleanTrigger, TtlStrategy
from pyhudi.config.option import choice, flag, integer, name_list, optional_text

_TTL = "hoodie.partition.ttl."
_STRATEGY = _TTL + "strategy."

MAX_HOURS = 8_760_000
"""Hours of a thousand years; much longer ago there are no dates."""

AUTO_CLEAN = flag("hoodie.clean.automatic", True, "If true, a write cleans old file versions after its commit.")
CLEAN_POLICY = choice(
    "hoodie.clean.policy",
    CleanPolicy.KEEP_LATEST_COMMITS,
    "Policy that selects the old file versions to retain.",
    any_case=False,
)
CLEAN_COMMITS_RETAINED = integer(
    "hoodie.clean.commits.retained", 10, "Number of commits whose files are retained.", minimum=1
)
CLEAN_FILE_VERSIONS_RETAINED = integer(
    "hoodie.clean.fileversions.retained", 3, "Number of file versions that are retained.", minimum=1
)
CLEAN_HOURS_RETAINED = integer(
    "hoodie.clean.hours.retained", 24, "Number of hours for which old files are retained.", maximum=MAX_HOURS
)
CLEAN_TRIGGER_STRATEGY = choice(
    "hoodie.clean.trigger.strategy", CleanTrigger.NUM_COMMITS, "Trigger of cleaning.", any_case=False
)
CLEAN_TRIGGER_MAX_COMMITS = integer(
    "hoodie.clean.trigger.max.commits",
    1,
    "Number of commits since the last clean after which cleaning is due.",
    minimum=1,
)
CLEAN_MAX_COMMITS_TO_CLEAN = integer(
    "hoodie.clean.max.commits.to.clean",
    9_223_372_036_854_775_807,
    "Maximum number of commits by which one clean may advance the earliest retained commit.",
    minimum=1,
)
CLEAN_ASYNC = flag(
    "hoodie.clean.async.enabled",
    False,
    "If true, a write starts cleaning concurrently and waits for it after its commit, instead of cleaning after "
    "the commit.",
)
CLEAN_PARALLELISM = integer(
    "hoodie.clean.parallelism", 200, "Number of threads that delete files, at most 16.", minimum=1
)
CLEAN_PARTITION_REGEX = optional_text(
    "hoodie.clean.partition.filter.regex",
    "Regular expression for the paths of the partitions that are cleaned. By default, all are.",
)
CLEAN_PARTITIONS = name_list(
    "hoodie.clean.partition.filter.selected", "Paths of the partitions that are cleaned. By default, all are."
)
CLEAN_EMPTY_INTERVAL_HOURS = integer(
    "hoodie.write.empty.clean.interval.hours",
    -1,
    "Number of hours after the last clean after which an empty clean is written to the timeline, so that the next "
    "plan examines fewer writes. -1: never.",
    minimum=1,
    maximum=MAX_HOURS,
    never=-1,
)
CLEAN_MULTIPLE_ENABLED = flag(
    "hoodie.clean.multiple.enabled", False, "If true, cleaning is planned even if another clean is pending."
)
CLEAN_INCREMENTAL = flag(
    "hoodie.clean.incremental.enabled", True, "If true, cleaning examines only partitions changed since the last clean."
)
AUTO_ARCHIVE = flag("hoodie.archive.automatic", True, "If true, a write archives old instants after its commit.")
KEEP_MIN_COMMITS = integer(
    "hoodie.keep.min.commits", 20, "Minimum number of instants that archival leaves in the active timeline.", minimum=1
)
KEEP_MAX_COMMITS = integer(
    "hoodie.keep.max.commits", 30, "Number of active instants above which archival starts.", minimum=1
)
ARCHIVE_ASYNC = flag(
    "hoodie.archive.async",
    False,
    "If true, a write starts archival concurrently and waits for it after its commit, instead of archiving after "
    "the commit.",
)
ARCHIVE_BEYOND_SAVEPOINT = flag(
    "hoodie.archive.beyond.savepoint",
    False,
    "If true, instants after the first savepoint are archived, except those with a savepoint. No effect in "
    "merge-on-read tables of version 8 and 9.",
)
ARCHIVE_BLOCK_ON_CLEAN = flag(
    "hoodie.archive.block.on.latest.clean.ectr",
    False,
    "If true, instants since the earliest commit retained by the last clean stay in the active timeline.",
)
ARCHIVE_BATCH = integer(
    "hoodie.commits.archival.batch", 10, "Number of records in a block of an archive file.", minimum=1
)
TIMELINE_COMPACTION_BATCH = integer(
    "hoodie.timeline.compaction.batch.size",
    10,
    "Number of files of one level of the archived timeline that are merged.",
    minimum=2,
)
ARCHIVE_MERGE = flag(
    "hoodie.archive.merge.enable", False, "If true, small archive files of tables of version 6 are merged."
)
ARCHIVE_MERGE_BATCH = integer(
    "hoodie.archive.merge.files.batch.size", 10, "Number of small archive files that are merged into one.", minimum=2
)
ARCHIVE_MERGE_SMALL_LIMIT = integer(
    "hoodie.archive.merge.small.file.limit.bytes",
    20 * 1024**2,
    "Size in bytes below which an archive file is small.",
    minimum=1,
)
FAIL_ON_ARCHIVING = flag(
    "hoodie.fail.on.timeline.archiving", True, "If true, an error in archival after a commit is raised."
)

TTL_INLINE = flag(_TTL + "inline", False, "If true, a write drops the partitions that have expired, after its commit.")
TTL_STRATEGY = choice(
    _TTL + "management.strategy.type",
    TtlStrategy.KEEP_BY_TIME,
    "Event from which the age of a partition is measured: its last write, or the write that created it.",
)
TTL_STRATEGY_CLASS = optional_text(
    _STRATEGY + "class",
    "The same strategy by Apache Hudi's class name, `KeepByTimeStrategy` or `KeepByCreationTimeStrategy`, with or "
    "without package. Overrides the type.",
)
TTL_DAYS = integer(
    _STRATEGY + "days.retain", -1, "Days after which a partition expires; -1: never.", minimum=-1, maximum=365_000
)
TTL_PARTITIONS = name_list(
    _STRATEGY + "partition.selected", "Paths of the partitions that may expire. By default, all may."
)
TTL_MAX_PARTITIONS = integer(
    _STRATEGY + "max.delete.partitions",
    1000,
    "Maximum number of partitions that are dropped at once; the remaining ones follow with later writes.",
    minimum=1,
)
