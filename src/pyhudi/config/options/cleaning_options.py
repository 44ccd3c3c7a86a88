"""Options of cleaning and archival."""

from __future__ import annotations

from pyhudi.config.enums import CleanPolicy, CleanTrigger
from pyhudi.config.option import choice, flag, integer, maybe_text, names

AUTO_CLEAN = flag("hoodie.clean.automatic", True, "Whether a write cleans old file versions after its commit.")
CLEAN_POLICY = choice(
    "hoodie.clean.policy", CleanPolicy.KEEP_LATEST_COMMITS, "Which old file versions are kept.", any_case=False
)
CLEAN_COMMITS_RETAINED = integer("hoodie.clean.commits.retained", 10, "Commits whose files are kept.", least=1)
CLEAN_FILE_VERSIONS_RETAINED = integer("hoodie.clean.fileversions.retained", 3, "File versions that are kept.", least=1)
CLEAN_HOURS_RETAINED = integer("hoodie.clean.hours.retained", 24, "Hours for which old files are kept.")
CLEAN_TRIGGER_STRATEGY = choice(
    "hoodie.clean.trigger.strategy", CleanTrigger.NUM_COMMITS, "When cleaning is due.", any_case=False
)
CLEAN_TRIGGER_MAX_COMMITS = integer(
    "hoodie.clean.trigger.max.commits", 1, "Commits since the last clean from which cleaning is due.", least=1
)
CLEAN_MAX_COMMITS_TO_CLEAN = integer(
    "hoodie.clean.max.commits.to.clean",
    9_223_372_036_854_775_807,
    "Commits by which one clean may move on the earliest commit that is retained.",
    least=1,
)
CLEAN_ASYNC = flag(
    "hoodie.clean.async.enabled",
    False,
    "Whether a write cleans while it is at work, and waits for it after its commit, instead of cleaning then.",
)
CLEAN_PARALLELISM = integer("hoodie.clean.parallelism", 200, "Threads that delete files, 16 at most.", least=1)
CLEAN_PARTITION_REGEX = maybe_text(
    "hoodie.clean.partition.filter.regex",
    "Regular expression of the partition paths that are cleaned; all if not given.",
)
CLEAN_PARTITIONS = names(
    "hoodie.clean.partition.filter.selected", "Partition paths that are cleaned; all if not given."
)
CLEAN_EMPTY_INTERVAL_HOURS = integer(
    "hoodie.write.empty.clean.interval.hours",
    -1,
    "Hours after the last clean from which one without files is put on the timeline, so that the next one looks at "
    "fewer writes; below 0: never.",
    least=-1,
)
CLEAN_MULTIPLE_ENABLED = flag(
    "hoodie.clean.multiple.enabled", False, "Whether cleaning is planned while another one is pending."
)
CLEAN_INCREMENTAL = flag(
    "hoodie.clean.incremental.enabled", True, "Whether cleaning looks only at partitions changed since the last one."
)
AUTO_ARCHIVE = flag("hoodie.archive.automatic", True, "Whether a write archives old instants after its commit.")
KEEP_MIN_COMMITS = integer("hoodie.keep.min.commits", 20, "Instants that archiving leaves active.", least=1)
KEEP_MAX_COMMITS = integer("hoodie.keep.max.commits", 30, "Active instants from which archiving starts.", least=1)
ARCHIVE_ASYNC = flag(
    "hoodie.archive.async",
    False,
    "Whether a write archives while it is at work, and waits for it after its commit, instead of archiving then.",
)
ARCHIVE_BEYOND_SAVEPOINT = flag(
    "hoodie.archive.beyond.savepoint",
    False,
    "Whether instants after the first savepoint are archived, saved ones aside.",
)
ARCHIVE_BLOCK_ON_CLEAN = flag(
    "hoodie.archive.block.on.latest.clean.ectr",
    False,
    "Whether instants from the earliest one that the last clean has retained stay active.",
)
ARCHIVE_BATCH = integer("hoodie.commits.archival.batch", 10, "Records of a block of an archive file.", least=1)
TIMELINE_COMPACTION_BATCH = integer(
    "hoodie.timeline.compaction.batch.size", 10, "Files of a level of the archived timeline that are merged.", least=2
)
ARCHIVE_MERGE = flag(
    "hoodie.archive.merge.enable", False, "Whether small archive files of a table of version 6 are merged."
)
ARCHIVE_MERGE_BATCH = integer(
    "hoodie.archive.merge.files.batch.size", 10, "Small archive files that are merged into one.", least=2
)
ARCHIVE_MERGE_SMALL_LIMIT = integer(
    "hoodie.archive.merge.small.file.limit.bytes", 20 * 1024**2, "Archive files of fewer bytes are small.", least=1
)
FAIL_ON_ARCHIVING = flag(
    "hoodie.fail.on.timeline.archiving", True, "Whether an error of archiving after a commit is raised."
)
