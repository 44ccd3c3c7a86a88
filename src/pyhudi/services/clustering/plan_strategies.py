"""Plan strategies of clustering: selection and grouping of partitions and file slices as in Apache Hudi, on Arrow
tables of file slices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.arrow.arrays import list_sums
from pyhudi.config import Options, options
from pyhudi.config.enums import BucketIndexEngine, IndexType, PartitionFilterMode
from pyhudi.config.option import compile_regex
from pyhudi.errors import ConfigError, InvalidOptionError
from pyhudi.format.file_names import file_names_of
from pyhudi.index.consistent_hashing import HashingMetadata
from pyhudi.services.clustering.bucket_resizing import EXECUTION_STRATEGY, PLAN_STRATEGY, ResizingRules, is_resizing
from pyhudi.table.view.compaction_operations import list_names
from pyhudi.timeline.plans.clustering_plan import INPUT_SCHEMA, ClusteringPlan

_MIB = 1024 * 1024
_PLAN_PACKAGE = "org.apache.hudi.client.clustering.plan.strategy."
_RUN_PACKAGE = "org.apache.hudi.client.clustering.run.strategy."
_SINGLE_FILE_PLAN, _SINGLE_FILE_RUN = "SparkSingleFileSortPlanStrategy", "SparkSingleFileSortExecutionStrategy"
_COPY_PLAN, _COPY_RUN = "SparkStreamCopyClusteringPlanStrategy", "SparkBinaryCopyClusteringExecutionStrategy"
_STREAM_COPY_RUN = "SparkStreamCopyClusteringExecutionStrategy"
"""Class with which Apache Hudi executes plans for copying. By default it compares the schemas of files only for its own
plan strategies, so pyhudi's plans name the strategy that always does."""
_COPY_RUNS = frozenset((_COPY_RUN, _STREAM_COPY_RUN))
_PLANS = {
    "SparkSizeBasedClusteringPlanStrategy": None,
    "JavaSizeBasedClusteringPlanStrategy": None,
    "SparkRecentDaysClusteringPlanStrategy": PartitionFilterMode.RECENT_DAYS,
    "SparkSelectedPartitionsClusteringPlanStrategy": PartitionFilterMode.SELECTED_PARTITIONS,
    _SINGLE_FILE_PLAN: None,
    _COPY_PLAN: None,
    PLAN_STRATEGY: None,
}
"""Plan strategies, with the partition filter that some imply."""
_RUNS = frozenset(
    {
        "SparkSortAndSizeExecutionStrategy",
        "SingleSparkJobExecutionStrategy",
        "JavaSortAndSizeExecutionStrategy",
        _SINGLE_FILE_RUN,
        EXECUTION_STRATEGY,
        *_COPY_RUNS,
    }
)


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """Partition filter: listed partitions (all if none are listed), then by pattern, then by ``mode``."""

    mode: PartitionFilterMode
    named: tuple[str, ...]
    pattern: re.Pattern[str] | None
    begin: str
    end: str
    lookback: int
    skipped: int
    hour: int

    def apply(self, partitions: Sequence[str]) -> list[str]:
        """Return the partitions to cluster, in order."""
        selected = [path for path in sorted(partitions) if not self.named or path in self.named]
        if self.pattern is not None and not self.named:
            selected = [path for path in selected if self.pattern.fullmatch(path)]
        match self.mode:
            case PartitionFilterMode.RECENT_DAYS:
                last = sorted(selected, reverse=True)[self.skipped :]
                return last[: self.lookback] if self.lookback else last
            case PartitionFilterMode.SELECTED_PARTITIONS:
                return [path for path in selected if self.begin <= path <= self.end]
            case PartitionFilterMode.DAY_ROLLING:
                return sorted(selected, reverse=True)[self.hour :: 24]
            case _:
                return selected


@dataclass(frozen=True, slots=True)
class PlanStrategy:
    """Grouping of file slices. Sizes are in bytes; ``new_file_size`` is the assumed size for a slice without a base
    file. ``execution`` is the class that executes the plan."""

    partitions: PartitionFilter
    execution: str
    single_files: bool
    small_file_limit: int
    group_bytes: int
    target_bytes: int
    max_groups: int
    leftovers: bool
    new_file_size: int
    resizing: ResizingRules | None
    """Rules for splitting and merging consistent hashing buckets, if this is planned."""

    @classmethod
    def from_options(cls, opts: Options, new_file_size: int, now: datetime | None = None) -> PlanStrategy:
        """Create the strategy from the options.

        Raises:
            ConfigError: A strategy is unknown, or lacks an option.
        """
        plan = _plan_name(opts)
        if plan not in _PLANS:
            raise InvalidOptionError(options.CLUSTERING_PLAN_STRATEGY.key, plan, ", ".join(sorted(_PLANS)))
        execution = opts.get_typed(options.CLUSTERING_EXECUTION_STRATEGY)
        single = plan == _SINGLE_FILE_PLAN
        if single and not opts.is_set(options.CLUSTERING_EXECUTION_STRATEGY):
            execution = _RUN_PACKAGE + _SINGLE_FILE_RUN
        if plan == _COPY_PLAN and not opts.is_set(options.CLUSTERING_EXECUTION_STRATEGY):
            execution = _RUN_PACKAGE + _COPY_RUN
        if plan == PLAN_STRATEGY and not opts.is_set(options.CLUSTERING_EXECUTION_STRATEGY):
            execution = _RUN_PACKAGE + EXECUTION_STRATEGY
        if is_resizing(execution) != is_resizing(plan):
            raise ConfigError(
                f"{options.CLUSTERING_PLAN_STRATEGY.key}={plan} and "
                f"{options.CLUSTERING_EXECUTION_STRATEGY.key}={execution} cannot be combined: splitting and "
                f"merging buckets requires {PLAN_STRATEGY} with {EXECUTION_STRATEGY}"
            )
        if is_single_file(execution) and not single:
            raise ConfigError(
                f"{options.CLUSTERING_EXECUTION_STRATEGY.key}={execution} rewrites files individually, which "
                f"requires {options.CLUSTERING_PLAN_STRATEGY.key}={_PLAN_PACKAGE}{_SINGLE_FILE_PLAN}"
            )
        return cls(
            _partition_filter(opts, _PLANS[plan], now or datetime.now()),
            execution,
            single,
            opts.get_typed(options.CLUSTERING_SMALL_FILE_LIMIT),
            opts.get_typed(options.CLUSTERING_GROUP_BYTES),
            opts.get_typed(options.CLUSTERING_TARGET_FILE_BYTES),
            opts.get_typed(options.CLUSTERING_MAX_GROUPS),
            opts.get_typed(options.CLUSTERING_SINGLE_GROUP),
            new_file_size,
            ResizingRules.from_options(opts, new_file_size) if plan == PLAN_STRATEGY else None,
        )

    def plan(self, slices: pa.Table) -> ClusteringPlan:
        """Return the plan for slices (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`), without sort columns."""
        small = pc.less(pc.fill_null(slices["base_size"], 0), self.small_file_limit)
        slices = slices.filter(small)
        parts: list[pa.Table] = []
        outputs: list[int] = []
        for partition in self.partitions.apply(pc.unique(slices["partition"]).to_pylist()):
            if len(outputs) >= self.max_groups:
                break
            in_partition = slices.filter(pc.equal(slices["partition"], partition)).combine_chunks()
            sizes = pc.fill_null(in_partition["base_size"], self.new_file_size).to_numpy()
            order = np.argsort(-sizes, kind="stable")
            sizes = sizes[order]
            cuts = self._cuts(sizes)[: self.max_groups - len(outputs)]
            for begin, end in cuts:
                chosen = in_partition.take(pa.array(order[begin:end]))
                parts.append(clustering_inputs(chosen, len(outputs), self.new_file_size))
                outputs.append(1 if self.single_files else max(1, -(-int(sizes[begin:end].sum()) // self.target_bytes)))
        inputs = pa.concat_tables(parts) if parts else INPUT_SCHEMA.empty_table()
        return ClusteringPlan(inputs, tuple(outputs), self.execution)

    def resizing_plan(self, slices: pa.Table, metadata: Mapping[str, HashingMetadata]) -> ClusteringPlan:
        """Return the plan that splits and merges buckets, as of `plan`; ``metadata`` has the buckets of each
        partition."""
        assert self.resizing is not None
        chosen = self.partitions.apply(pc.unique(slices["partition"]).to_pylist())
        slices = slices.filter(pc.is_in(slices["partition"], pa.array(chosen, pa.string())))
        plan = self.resizing.plan(
            slices, metadata, lambda rows, number: clustering_inputs(rows, number, self.new_file_size)
        )
        return replace(plan, strategy=self.execution)

    def _cuts(self, sizes: np.ndarray) -> list[tuple[int, int]]:
        """Return the boundaries of groups in slices of these sizes, the largest first."""
        if self.single_files:
            return [(n, n + 1) for n in range(len(sizes))]
        ends = np.cumsum(sizes)
        cuts, begin = [], 0
        while begin < len(sizes):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + self.group_bytes, side="right")))
            cuts.append((begin, end))
            begin = end
        if cuts and cuts[-1][1] - cuts[-1][0] == 1 and not self.leftovers:
            cuts.pop()
        return cuts


def is_single_file(execution: str) -> bool:
    """Return True if an execution strategy rewrites every file individually.

    Raises:
        ConfigError: The strategy is unknown.
    """
    name = execution.removeprefix(_RUN_PACKAGE)
    if name not in _RUNS:
        raise InvalidOptionError(options.CLUSTERING_EXECUTION_STRATEGY.key, execution, ", ".join(sorted(_RUNS)))
    return name == _SINGLE_FILE_RUN


def _plan_name(opts: Options) -> str:
    """Return the plan strategy, without package; the default depends on whether the table has consistent hashing."""
    consistent = (
        opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
        and opts.get_typed(options.BUCKET_ENGINE) is BucketIndexEngine.CONSISTENT_HASHING
    )
    if consistent and not opts.is_set(options.CLUSTERING_PLAN_STRATEGY):
        return PLAN_STRATEGY
    return opts.get_typed(options.CLUSTERING_PLAN_STRATEGY).removeprefix(_PLAN_PACKAGE)


def is_copying(execution: str) -> bool:
    """Return True if an execution strategy copies row groups without decoding where possible."""
    return execution.removeprefix(_RUN_PACKAGE) in _COPY_RUNS


def _partition_filter(opts: Options, implied_mode: PartitionFilterMode | None, now: datetime) -> PartitionFilter:
    mode = implied_mode or opts.get_typed(options.CLUSTERING_PARTITION_FILTER)
    begin, end = (
        opts.get_typed(option) for option in (options.CLUSTERING_BEGIN_PARTITION, options.CLUSTERING_END_PARTITION)
    )
    if mode is PartitionFilterMode.SELECTED_PARTITIONS and (begin is None or end is None):
        raise ConfigError(
            f"{mode} requires {options.CLUSTERING_BEGIN_PARTITION.key} and {options.CLUSTERING_END_PARTITION.key}"
        )
    text = opts.get_typed(options.CLUSTERING_PARTITION_REGEX)
    pattern = compile_regex(options.CLUSTERING_PARTITION_REGEX, text) if text else None
    return PartitionFilter(
        mode,
        opts.get_typed(options.CLUSTERING_PARTITIONS),
        pattern,
        begin or "",
        end or "",
        opts.get_typed(options.CLUSTERING_LOOKBACK_PARTITIONS),
        opts.get_typed(options.CLUSTERING_SKIP_PARTITIONS),
        now.hour,
    )


def clustering_inputs(slices: pa.Table, number: int, new_file_size: int) -> pa.Table:
    """Return the rows of a group in a plan (`INPUT_SCHEMA`).

    Args:
        slices: File slices (:data:`pyhudi.table.view.file_slicing.SLICE_SCHEMA`).
        number: Number of the group.
        new_file_size: Expected size of base files that do not exist yet.
    """
    base_size = pc.fill_null(slices["base_size"], 0)
    log_bytes = list_sums(slices["log_sizes"])
    named = file_names_of(pc.fill_null(slices["base_path"], ""))
    columns = [
        pa.repeat(pa.scalar(number, pa.int32()), slices.num_rows),
        slices["partition"],
        slices["file_id"],
        pc.if_else(pc.is_valid(slices["base_path"]), named, pa.scalar(None, pa.string())),
        list_names(slices["log_paths"]),
        log_bytes,
        pc.divide(pc.add(base_size, log_bytes), _MIB),
        pc.divide(pc.fill_null(slices["base_size"], new_file_size), _MIB),
    ]
    return pa.Table.from_arrays(columns, schema=INPUT_SCHEMA)
