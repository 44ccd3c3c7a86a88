"""Rescaling of the simple bucket index: partitions get other numbers of buckets, by a replacecommit that rewrites them.

The new numbers are stored under the instant of the commit, and count once it is completed. Writers that planned with
the old numbers conflict with it (`pyhudi.transaction.conflicts.conflict_detection`). Source: the procedure
``partition_bucket_index_manager`` of Apache Hudi 1.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from pyhudi.config import Options, options
from pyhudi.config.enums import BucketIndexEngine, IndexType, Operation, PartitionValues
from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.index.bucket_counts import BucketCounts, load_counts
from pyhudi.index.bucket_number_check import check_buckets
from pyhudi.index.consistent_hashing import partitions_with_buckets
from pyhudi.read.scan_planner import plan_scan
from pyhudi.spark.read.dataframe_reader import dataframe
from pyhudi.spark.read.spark_scan import SparkScan
from pyhudi.spark.write.dml_commit import DmlCommit
from pyhudi.spark.write.write_execution import execute_write
from pyhudi.spark.write.write_preparation import prepare_write
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from pyhudi.transaction.conflicts.serializable_reads import partition_reads
from pyhudi.write.conflict_retries import with_retries
from pyhudi.write.write_result import WriteResult

NewCounts = Callable[[BucketCounts | None], BucketCounts]
"""Returns the new numbers of buckets; its argument has those that the table stores, None if it stores none."""


def overwritten_counts(rules: str, rule_type: str, default: int | None) -> NewCounts:
    """Return new rules in place of those of the table.

    Args:
        rules: Pairs of a regular expression and a number (`hoodie.bucket.index.partition.expressions`).
        rule_type: Kind of the rules (`hoodie.bucket.index.partition.rule.type`).
        default: Number of buckets of other partitions; None: as the table stores it.
    """

    def counts(stored: BucketCounts | None) -> BucketCounts:
        if default is None and stored is None:
            raise ConfigError(
                "the table stores no numbers of buckets: set bucket_number to the number with which it was created"
            )
        return _parsed(rules, rule_type, stored.default if default is None and stored is not None else default)

    return counts


def added_counts(rules: str, rule_type: str) -> NewCounts:
    """Return rules that come before those of the table. Arguments as of `overwritten_counts`."""

    def counts(stored: BucketCounts | None) -> BucketCounts:
        if stored is None:
            raise ConfigError(
                "the table stores no numbers of buckets to which rules could be added: set overwrite instead, and "
                "bucket_number to the number with which it was created"
            )
        return _parsed(";".join(filter(None, (rules, stored.text))), rule_type, stored.default)

    return counts


def _parsed(rules: str, rule_type: str, default: int | None) -> BucketCounts:
    settings = {
        options.BUCKET_PARTITION_EXPRESSIONS.key: rules,
        options.BUCKET_PARTITION_RULE.key: rule_type,
        options.INITIAL_BUCKETS.key: str(default),
    }
    return BucketCounts.from_options(Options.parse(settings))


@dataclass(frozen=True, slots=True)
class BucketRescaling:
    """Change of the numbers of buckets.

    Attributes:
        table: The snapshot that is rewritten.
        slices: Its file slices (SLICE_SCHEMA).
        before: The numbers of the table.
        after: The new numbers.
    """

    table: TableSnapshot
    slices: pa.Table
    before: BucketCounts
    after: BucketCounts

    @classmethod
    def plan(cls, client: TableMetaClient, new_counts: NewCounts) -> BucketRescaling:
        """Compare new numbers with those of the table. A table that stores none has the new default everywhere.

        Raises:
            UnsupportedTableError: The table does not have the simple bucket index.
            ConfigError: The new numbers need stored ones.
        """
        table = TableSnapshot.load(client)
        slices = FileSystemView.load(table).latest_slices()
        if partitions_with_buckets(client.storage) or (slices.num_rows and bucket_evidence(table) is None):
            raise UnsupportedTableError(
                f"the table {client.config.name!r} does not have the simple bucket index, whose numbers of buckets can "
                "be changed for each partition; clustering splits and merges the buckets of consistent hashing"
            )
        stored = load_counts(client.storage, table.active.timeline)
        after = new_counts(stored)
        return cls(table, slices, BucketCounts(after.default) if stored is None else stored, after)

    @property
    def partitions(self) -> dict[str, int]:
        """Paths of the partitions whose number changes, with the new number."""
        paths = filter(self.is_rewritten, pc.unique(self.slices["partition"]).to_pylist())
        return {path: self.after.of_partition(path) for path in sorted(paths)}

    def is_rewritten(self, partition: str) -> bool:
        """Return True if the number of buckets of a partition changes, whether it exists yet or not."""
        return self.after.of_partition(partition) != self.before.of_partition(partition)


def rescale_buckets(spark: SparkSession, client: TableMetaClient, opts: Options, new_counts: NewCounts) -> WriteResult:
    """Rewrite the partitions whose number of buckets changes, and store the new numbers, in one commit.

    Returns:
        The result of the write.

    Raises:
        UnsupportedTableError: The table does not have the simple bucket index.
        ConfigError: The table was created with other numbers than the stored or the default one.
        ConflictError: Other writers changed the table, in every attempt.
    """
    return with_retries(client.storage, opts, lambda: _rescale_once(spark, client.reload(), opts, new_counts))


def _rescale_once(spark: SparkSession, client: TableMetaClient, opts: Options, new_counts: NewCounts) -> WriteResult:
    planned = BucketRescaling.plan(client, new_counts)
    opts = _write_options(opts, planned.before)
    job = prepare_write(_rows(spark, planned, opts), client, Operation.BUCKET_RESCALE, opts)
    assert job.bucketing is not None
    bucketing = replace(job.bucketing, counts=planned.before)
    check_buckets(client.storage, bucketing, planned.slices, populate_meta_fields=client.config.populate_meta_fields)
    job = replace(
        job,
        bucketing=replace(bucketing, counts=planned.after),
        partitions=tuple(planned.partitions),
        dml=DmlCommit(partition_reads(planned.table, planned.is_rewritten)),
    )
    return execute_write(job)


def _write_options(opts: Options, before: BucketCounts) -> Options:
    """Return the options of the write that rewrites the partitions."""
    settings = {
        options.INDEX_TYPE.key: IndexType.BUCKET.value,
        options.BUCKET_ENGINE.key: BucketIndexEngine.SIMPLE.value,
        options.INITIAL_BUCKETS.key: str(before.default),
        options.ALLOW_EMPTY_COMMIT.key: "true",  # Rules for partitions that do not exist yet change no rows.
        options.READ_PARTITION_VALUES.key: PartitionValues.FILE.value,  # In paths they are texts.
        options.TABLE_SERVICES_ENABLED.key: "false",  # None follows, so their options are not checked.
    }
    others = {key: value for key, value in opts.items() if key != options.BUCKET_PARTITION_EXPRESSIONS.key}
    return Options.parse({**others, **settings})


def _rows(spark: SparkSession, planned: BucketRescaling, opts: Options) -> DataFrame:
    """Return the rows of the partitions that are rewritten."""
    plan = plan_scan(planned.table, opts=opts).select_partitions(planned.partitions)
    return dataframe(SparkScan(spark, planned.table, plan, opts))
