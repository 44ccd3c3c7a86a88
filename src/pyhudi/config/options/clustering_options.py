"""Options of clustering: when it is planned, what it takes on, and how rows are laid out."""

from __future__ import annotations

from pyhudi.config.enums import LayoutStrategy, PartitionFilterMode
from pyhudi.config.option import choice, flag, integer, maybe_text, names, text

_CLUSTERING = "hoodie.clustering."
_PLAN = _CLUSTERING + "plan.strategy."
_LAYOUT = "hoodie.layout.optimize."

CLUSTERING_INLINE = flag(_CLUSTERING + "inline", False, "Whether a write runs clustering after its commit, when due.")
CLUSTERING_INLINE_MAX_COMMITS = integer(
    _CLUSTERING + "inline.max.commits", 4, "Commits since the last clustering from which inline clustering is due."
)
CLUSTERING_SCHEDULE_INLINE = flag(
    _CLUSTERING + "schedule.inline",
    False,
    "Whether a write plans clustering after its commit, when due, for another process to run.",
)
CLUSTERING_ASYNC = flag(
    _CLUSTERING + "async.enabled", False, "Whether clustering is planned for, and run by, another process."
)
CLUSTERING_ASYNC_MAX_COMMITS = integer(
    _CLUSTERING + "async.max.commits", 4, "Commits since the last clustering from which planned clustering is due."
)
CLUSTERING_PLAN_STRATEGY = text(
    _PLAN + "class",
    "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
    "How file groups are chosen and grouped, by Apache Hudi's class name, with or without package. "
    "`SparkStreamCopyClusteringPlanStrategy` has row groups of Parquet files copied as they are, instead of rows "
    "rewritten, where that can be: small row groups stay small.",
)
CLUSTERING_EXECUTION_STRATEGY = text(
    _CLUSTERING + "execution.strategy.class",
    "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
    "How a group of files is rewritten, by Apache Hudi's class name, with or without package.",
)
CLUSTERING_UPDATES_STRATEGY = text(
    _CLUSTERING + "updates.strategy",
    "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
    "What becomes of writes that change file groups of a pending clustering, by Apache Hudi's class name: "
    "`SparkRejectUpdateStrategy` refuses them.",
)
CLUSTERING_TARGET_FILE_BYTES = integer(
    _PLAN + "target.file.max.bytes", 1024**3, "Size at which a clustered file is full.", least=1
)
CLUSTERING_SMALL_FILE_LIMIT = integer(
    _PLAN + "small.file.limit", 300 * 1024**2, "Base files smaller than this are clustered."
)
CLUSTERING_GROUP_BYTES = integer(
    _PLAN + "max.bytes.per.group", 2 * 1024**3, "Bytes of base files that are clustered together.", least=1
)
CLUSTERING_MAX_GROUPS = integer(_PLAN + "max.num.groups", 30, "Groups that one plan has.", least=1)
CLUSTERING_SINGLE_GROUP = flag(
    _PLAN + "single.group.clustering.enabled", True, "Whether a file that is left over alone is clustered, too."
)
CLUSTERING_SORT_COLUMNS = names(_PLAN + "sort.columns", "Columns that clustered rows are sorted by.")
CLUSTERING_PARTITION_FILTER = choice(
    _CLUSTERING + "plan.partition.filter.mode",
    PartitionFilterMode.NONE,
    "Which partitions are clustered: all, the last ones, those in a range, or another 24th of them every hour.",
)
CLUSTERING_BEGIN_PARTITION = maybe_text(_PLAN + "cluster.begin.partition", "First path of SELECTED_PARTITIONS.")
CLUSTERING_END_PARTITION = maybe_text(_PLAN + "cluster.end.partition", "Last path of SELECTED_PARTITIONS.")
CLUSTERING_PARTITIONS = names(_PLAN + "partition.selected", "Partition paths that are clustered; none: all.")
CLUSTERING_PARTITION_REGEX = maybe_text(
    _PLAN + "partition.regex.pattern", "Regular expression that the whole path of a clustered partition matches."
)
CLUSTERING_LOOKBACK_PARTITIONS = integer(
    _PLAN + "daybased.lookback.partitions", 2, "How many of the last partitions RECENT_DAYS takes."
)
CLUSTERING_SKIP_PARTITIONS = integer(
    _PLAN + "daybased.skipfromlatest.partitions", 0, "How many of the last partitions RECENT_DAYS leaves out."
)
LAYOUT_STRATEGY = choice(
    _LAYOUT + "strategy",
    LayoutStrategy.LINEAR,
    "How rows are sorted by several columns: by one after the other, or along a curve through all of them.",
)
LAYOUT_SAMPLE_SIZE = integer(
    _LAYOUT + "build.curve.sample.size", 200_000, "Rows that are looked at to lay a curve.", least=1
)
