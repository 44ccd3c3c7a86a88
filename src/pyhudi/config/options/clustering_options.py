"""Options of clustering: trigger, plan and layout."""

from __future__ import annotations

from pyhudi.config.enums import LayoutStrategy, PartitionFilterMode
from pyhudi.config.option import choice, flag, integer, name_list, optional_text, text

_CLUSTERING = "hoodie.clustering."
_PLAN = _CLUSTERING + "plan.strategy."
_LAYOUT = "hoodie.layout.optimize."

CLUSTERING_INLINE = flag(
    _CLUSTERING + "inline", False, "If true, a write runs clustering after its commit if it is due."
)
CLUSTERING_INLINE_MAX_COMMITS = integer(
    _CLUSTERING + "inline.max.commits",
    4,
    "Number of commits since the last clustering after which inline clustering is due.",
)
CLUSTERING_SCHEDULE_INLINE = flag(
    _CLUSTERING + "schedule.inline",
    False,
    "If true, a write plans clustering after its commit if it is due; another process executes it.",
)
CLUSTERING_ASYNC = flag(
    _CLUSTERING + "async.enabled",
    False,
    "If true, clustering is planned for asynchronous execution by another process.",
)
CLUSTERING_ASYNC_MAX_COMMITS = integer(
    _CLUSTERING + "async.max.commits",
    4,
    "Number of commits since the last clustering after which asynchronous clustering is due.",
)
CLUSTERING_PLAN_STRATEGY = text(
    _PLAN + "class",
    "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
    "Plan strategy, which selects and groups file groups, by Apache Hudi's class name, with or without package. "
    "`SparkStreamCopyClusteringPlanStrategy` copies row groups of Parquet files without decoding them where "
    "possible; small row groups stay small.",
)
CLUSTERING_EXECUTION_STRATEGY = text(
    _CLUSTERING + "execution.strategy.class",
    "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy",
    "Execution strategy, which rewrites a group of files, by Apache Hudi's class name, with or without package.",
)
CLUSTERING_UPDATES_STRATEGY = text(
    _CLUSTERING + "updates.strategy",
    "org.apache.hudi.client.clustering.update.strategy.SparkRejectUpdateStrategy",
    "Treatment of writes to file groups of a pending clustering, by Apache Hudi's class name: "
    "`SparkRejectUpdateStrategy` refuses them, and so does `SparkConsistentBucketDuplicateUpdateStrategy` here; with "
    "`SparkAllowUpdateStrategy` the clustering is planned again.",
)
CLUSTERING_TARGET_FILE_BYTES = integer(
    _PLAN + "target.file.max.bytes", 1024**3, "Target size in bytes of a clustered file.", minimum=1
)
CLUSTERING_SMALL_FILE_LIMIT = integer(
    _PLAN + "small.file.limit", 300 * 1024**2, "Size in bytes below which base files are clustered."
)
CLUSTERING_GROUP_BYTES = integer(
    _PLAN + "max.bytes.per.group",
    2 * 1024**3,
    "Maximum size in bytes of the base files of one clustering group.",
    minimum=1,
)
CLUSTERING_MAX_GROUPS = integer(_PLAN + "max.num.groups", 30, "Maximum number of groups of a plan.", minimum=1)
CLUSTERING_SINGLE_GROUP = flag(
    _PLAN + "single.group.clustering.enabled", True, "If true, a group of a single file is clustered, too."
)
CLUSTERING_SORT_COLUMNS = name_list(_PLAN + "sort.columns", "Columns by which clustered rows are sorted.")
CLUSTERING_PARTITION_FILTER = choice(
    _CLUSTERING + "plan.partition.filter.mode",
    PartitionFilterMode.NONE,
    "Selection of partitions: all, the most recent ones, those in a range, or a different 24th of them every hour.",
)
CLUSTERING_BEGIN_PARTITION = optional_text(
    _PLAN + "cluster.begin.partition", "First partition path of SELECTED_PARTITIONS."
)
CLUSTERING_END_PARTITION = optional_text(_PLAN + "cluster.end.partition", "Last partition path of SELECTED_PARTITIONS.")
CLUSTERING_PARTITIONS = name_list(
    _PLAN + "partition.selected", "Paths of the partitions that are clustered. By default, all are."
)
CLUSTERING_PARTITION_REGEX = optional_text(
    _PLAN + "partition.regex.pattern", "Regular expression that must match the whole path of a clustered partition."
)
CLUSTERING_LOOKBACK_PARTITIONS = integer(
    _PLAN + "daybased.lookback.partitions", 2, "Number of most recent partitions that RECENT_DAYS selects."
)
CLUSTERING_SKIP_PARTITIONS = integer(
    _PLAN + "daybased.skipfromlatest.partitions", 0, "Number of most recent partitions that RECENT_DAYS skips."
)
LAYOUT_STRATEGY = choice(
    _LAYOUT + "strategy",
    LayoutStrategy.LINEAR,
    "Order of rows with several sort columns: lexicographic, or along a space-filling curve.",
    synonyms={"z-order": LayoutStrategy.ZORDER},
)
LAYOUT_SAMPLE_SIZE = integer(
    _LAYOUT + "build.curve.sample.size", 200_000, "Number of rows sampled to construct a curve.", minimum=1
)
