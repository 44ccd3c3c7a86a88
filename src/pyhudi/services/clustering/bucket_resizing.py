"""Splitting and merging of consistent hashing buckets: the plan strategy, and the routing of rows to the new buckets.

Large buckets are split in two, small adjacent ones on the ring of hashes are merged. The resulting buckets of a
partition are part of the plan, and are written besides the old ones before the clustering is completed
(`pyhudi.index.consistent_hashing`). Source of the rules: ``BaseConsistentHashingBucketClusteringPlanStrategy`` of
Apache Hudi.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import BucketIndexEngine, IndexType
from pyhudi.errors import ConfigError, FormatError, TransactionError, UnsupportedTableError
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.consistent_hashing import ChildNode, HashingMetadata, NodeTag, consistent_hashes
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.view.file_slicing import slice_sizes
from pyhudi.timeline.plans.clustering_plan import INPUT_SCHEMA, ClusteringPlan

PLAN_STRATEGY = "SparkConsistentBucketClusteringPlanStrategy"
EXECUTION_STRATEGY = "SparkConsistentBucketClusteringExecutionStrategy"
_PARTITION, _NODES, _SEQUENCE = (
    "clustering.group.partition",
    "clustering.group.child.node",
    "clustering.group.sequence.no",
)

Extra = Mapping[str, str]
Inputs = Callable[[pa.Table, int], pa.Table]


def is_resizing(strategy: str) -> bool:
    """Return True for the plan or execution strategy of consistent hashing, with or without package."""
    return "ConsistentBucket" in strategy


@dataclass(frozen=True, slots=True)
class ResizingRules:
    """Rules for splitting and merging buckets. Sizes are bytes of base and log files. ``sorts``: rows of other buckets
    are to be sorted, so they are rewritten, too."""

    max_buckets: int
    min_buckets: int
    split_above: float
    merge_up_to: float
    max_groups: int
    sorts: bool

    @classmethod
    def from_options(cls, opts: Options, full_file: int) -> ResizingRules:
        """Create the rules from the options; ``full_file`` is the maximum size of a base file.

        Raises:
            ConfigError: The maximum number of buckets is less than the minimum.
        """
        first = opts.get_typed(options.INITIAL_BUCKETS)
        max_buckets, min_buckets = opts.get_typed(options.BUCKET_MAX), opts.get_typed(options.BUCKET_MIN)
        rules = cls(
            first if max_buckets is None else max_buckets,
            max(1, first if min_buckets is None else min_buckets),
            full_file * opts.get_typed(options.BUCKET_SPLIT_THRESHOLD),
            full_file * opts.get_typed(options.BUCKET_MERGE_THRESHOLD),
            opts.get_typed(options.CLUSTERING_MAX_GROUPS),
            bool(opts.get_typed(options.CLUSTERING_SORT_COLUMNS)),
        )
        if rules.max_buckets < rules.min_buckets:
            raise ConfigError(
                f"{options.BUCKET_MAX.key}={rules.max_buckets} is less than "
                f"{options.BUCKET_MIN.key}={rules.min_buckets}; the default of both is {options.INITIAL_BUCKETS.key}"
            )
        return rules

    def plan(self, slices: pa.Table, buckets: Mapping[str, HashingMetadata], inputs: Inputs) -> ClusteringPlan:
        """Return the plan, without its strategy and sort columns.

        Args:
            slices: File slices that may be clustered (SLICE_SCHEMA), whole partitions only.
            buckets: Buckets of each partition.
            inputs: Creates rows of a plan (`INPUT_SCHEMA`) from slices and the number of their group.
        """
        parts: list[pa.Table] = []
        outputs: list[int] = []
        extra: list[Extra] = []
        for partition in sorted(set(pc.unique(slices["partition"]).to_pylist()) & buckets.keys()):
            in_partition = slices.filter(pc.equal(slices["partition"], partition)).combine_chunks()
            metadata = buckets[partition]
            for rows, children in self._changes(metadata, in_partition):
                if len(outputs) >= self.max_groups:
                    break
                parts.append(inputs(in_partition.take(pa.array(rows)), len(outputs)))
                outputs.append(sum(child.tag is NodeTag.REPLACE for child in children))
                extra.append(_encode(partition, metadata.sequence, children))
        rewritten = pa.concat_tables(parts) if parts else INPUT_SCHEMA.empty_table()
        return ClusteringPlan(rewritten, tuple(outputs), extra=tuple(extra))

    def _changes(self, metadata: HashingMetadata, slices: pa.Table) -> list[tuple[list[int], tuple[ChildNode, ...]]]:
        """Yield the slices (by row) of each group of a partition, and its new buckets: splits first, then merges."""
        of_id = {file_id: bucket for bucket, file_id in enumerate(metadata.file_ids())}
        rows = {of_id[name]: row for row, name in enumerate(slices["file_id"].to_pylist()) if name in of_id}
        file_sizes = slice_sizes(slices).tolist()
        sizes = {bucket: file_sizes[row] for bucket, row in rows.items()}
        changes: dict[tuple[int, ...], tuple[ChildNode, ...]] = {}
        room = self.max_buckets - len(metadata.ends)
        for bucket in sorted(rows):
            if len(changes) < room and sizes[bucket] > self.split_above:
                halves = metadata.split(bucket, (_prefix(), _prefix()))
                changes.update({(bucket,): halves} if halves else {})
        spare = len(metadata.ends) + len(changes) - self.min_buckets
        left = {bucket: sizes[bucket] for bucket in sorted(rows) if (bucket,) not in changes}
        for run in self._runs(metadata, left, spare):
            changes[tuple(run)] = metadata.merge(run, _prefix())
        if self.sorts:
            for bucket in left.keys() - set(chain.from_iterable(changes)):
                changes[(bucket,)] = (ChildNode(int(metadata.ends[bucket]), _prefix(), NodeTag.REPLACE),)
        return [([rows[bucket] for bucket in run], children) for run, children in changes.items()]

    def _runs(self, metadata: HashingMetadata, sizes: Mapping[int, int], spare: int) -> list[list[int]]:
        """Yield adjacent buckets to merge into one, as long as it is small, and ``spare`` buckets may be removed."""
        runs: list[list[int]] = []
        run: list[int] = []
        total = 0
        for bucket in sizes:  # Ascending.
            small = sizes[bucket] <= self.merge_up_to
            follows = bool(run) and metadata.bucket_before(bucket) == run[-1]
            if small and follows and spare > 0 and total <= self.merge_up_to:
                run.append(bucket)
                total += sizes[bucket]
                spare -= 1
                continue
            runs.append(run)
            run, total = ([bucket], sizes[bucket]) if small else ([], 0)
        runs.append(run)
        return [run for run in runs if len(run) > 1]


@dataclass(frozen=True, slots=True)
class BucketRouting:
    """Routing of the rows of some buckets of a partition: created once from the plan, sent to tasks."""

    bucketing: BucketIndex
    old: HashingMetadata
    new: HashingMetadata
    sources: frozenset[str]
    """File groups that are read."""

    def parts(self, keys: pa.Array) -> dict[str, pa.Array]:
        """Return the rows (int64) of each new file group.

        Raises:
            ConfigError: A key does not belong to the buckets that were read, so the options of the index are not those
                with which the table was written.
        """
        hashes = consistent_hashes(keys, self.bucketing.fields, legacy_key_split=self.bucketing.legacy_key_split)
        file_ids = self.old.file_ids()
        is_source_key = np.isin(self.old.buckets_of(hashes), [file_ids.index(name) for name in self.sources])
        if not is_source_key.all():
            key = keys[int(np.flatnonzero(~is_source_key)[0])].as_py()
            raise ConfigError(
                f"the record key {key!r} is in file group {min(self.sources)!r}, but with "
                f"{options.BUCKET_HASH_FIELD.key}={','.join(self.bucketing.fields)} it belongs to another bucket; "
                "set the value with which the table was created"
            )
        buckets = self.new.buckets_of(hashes)
        names = self.new.file_ids()
        return {names[bucket]: pa.array(np.flatnonzero(buckets == bucket)) for bucket in np.unique(buckets)}


def bucketing_of(config: TableConfig, opts: Options) -> BucketIndex:
    """Return the bucketing of a table with consistent hashing, regardless of the index in the options.

    Raises:
        ConfigError: A hash field is not a key field.
        UnsupportedTableError: The table stores no record keys.
    """
    if not config.populate_meta_fields:
        raise UnsupportedTableError(
            f"the table {config.name!r} stores no record keys (hoodie.populate.meta.fields=false), so pyhudi "
            "cannot split or merge its buckets; use Apache Hudi"
        )
    settings = {
        options.INDEX_TYPE.key: IndexType.BUCKET.value,
        options.BUCKET_ENGINE.key: BucketIndexEngine.CONSISTENT_HASHING.value,
    }
    bucketing = BucketIndex.from_options(config, Options.parse({**opts, **settings}))
    assert bucketing is not None
    return bucketing


def new_buckets(
    current: Mapping[str, HashingMetadata], instant: str, extra: Collection[Extra]
) -> dict[str, HashingMetadata]:
    """Return the buckets of each partition after a plan is executed.

    Args:
        current: Current buckets of the partitions.
        instant: Instant of the plan.
        extra: Additional metadata of the plan's groups.

    Raises:
        FormatError: The plan lacks the new buckets.
        TransactionError: Buckets of a partition were split or merged since the plan was made.
    """
    children: dict[str, list[ChildNode]] = {}
    for one in extra:
        partition, sequence, nodes = _decode(one)
        if partition not in current or current[partition].sequence != sequence:
            raise TransactionError(
                f"the buckets of partition {partition!r} were split or merged since the clustering {instant} was "
                "planned; roll the plan back"
            )
        children.setdefault(partition, []).extend(nodes)
    return {partition: current[partition].with_children(instant, nodes) for partition, nodes in children.items()}


def _prefix() -> str:
    return str(uuid.uuid4())


def _encode(partition: str, sequence: int, children: Sequence[ChildNode]) -> Extra:
    nodes = [{"value": child.end, "fileIdPrefix": child.prefix, "tag": child.tag.value} for child in children]
    return {_PARTITION: partition, _NODES: json.dumps(nodes), _SEQUENCE: str(sequence)}


def _decode(extra: Extra) -> tuple[str, int, list[ChildNode]]:
    try:
        nodes = [
            ChildNode(int(node["value"]), node.get("fileIdPrefix"), NodeTag(node["tag"]))
            for node in json.loads(extra[_NODES])
        ]
        return extra[_PARTITION], int(extra[_SEQUENCE]), nodes
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"a group of the clustering plan lacks its new buckets: {error!r}") from error
