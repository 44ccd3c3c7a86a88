"""Distribution of rows over buckets: the hashed fields, and the buckets of each partition."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import BucketIndexEngine, IndexType, TableType
from pyhudi.errors import ConfigError
from pyhudi.index.bucket_counts import BucketCounts, load_counts
from pyhudi.index.bucket_hash import hashed_values, java_list_hash
from pyhudi.storage import Storage
from pyhudi.table.config.table_config import TableConfig
from pyhudi.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class BucketIndex:
    """Bucket index of a table. ``fields`` are the key fields that determine the bucket, ``counts`` the numbers of
    buckets per partition.

    ``legacy_key_split``: keys are split as in release 0.15 (`pyhudi.index.bucket_hash.hashed_values`).
    """

    fields: tuple[str, ...]
    counts: BucketCounts
    legacy_key_split: bool = False
    engine: BucketIndexEngine = BucketIndexEngine.SIMPLE

    @classmethod
    def from_options(cls, config: TableConfig, opts: Options) -> BucketIndex | None:
        """Return the bucketing for the options of a write or read; None without a bucket index.

        Raises:
            ConfigError: A hash field is not a key field.
            UnsupportedTableError: The bucket index has an unsupported type.
        """
        if opts.get_typed(options.INDEX_TYPE) is not IndexType.BUCKET:
            return None
        engine = opts.get_typed(options.BUCKET_ENGINE)
        if engine is BucketIndexEngine.CONSISTENT_HASHING and config.table_type is not TableType.MERGE_ON_READ:
            raise ConfigError(
                f"{options.BUCKET_ENGINE.key}={engine} requires a merge-on-read table, as in Apache Hudi; use SIMPLE"
            )
        fields = opts.get_typed(options.BUCKET_HASH_FIELD) or config.record_keys
        unknown_fields = [name for name in fields if name not in config.record_keys]
        if unknown_fields:
            raise ConfigError(
                f"{options.BUCKET_HASH_FIELD.key} contains {', '.join(unknown_fields)}, but buckets are determined by "
                f"record key fields only: {', '.join(config.record_keys) or 'this table generates its keys'}"
            )
        if not fields:
            raise ConfigError(
                f"{options.INDEX_TYPE.key}=BUCKET requires record keys: set {options.RECORDKEY_FIELD.key}"
            )
        counts = BucketCounts.from_options(opts)
        if counts.rules and engine is not BucketIndexEngine.SIMPLE:
            raise ConfigError(
                f"{options.BUCKET_PARTITION_EXPRESSIONS.key} requires {options.BUCKET_ENGINE.key}=SIMPLE; with "
                f"{engine} the number of buckets grows with the partition"
            )
        return cls(tuple(fields), counts, config.version < 8, engine)

    def with_stored_counts(self, storage: Storage, timeline: Timeline) -> BucketIndex:
        """Return the bucketing with the numbers of buckets stored in the table at a timeline, if any.

        Raises:
            ConfigError: The options contain other numbers.
        """
        return self.with_counts(load_counts(storage, timeline) if self.engine is BucketIndexEngine.SIMPLE else None)

    def with_counts(self, stored_counts: BucketCounts | None) -> BucketIndex:
        """Return the bucketing with the numbers of buckets that the table stores; None: it stores none.

        Raises:
            ConfigError: The options contain other numbers.
        """
        if stored_counts is None:
            return self
        if self.counts.rules and self.counts != stored_counts:
            raise ConfigError(
                f"{options.BUCKET_PARTITION_EXPRESSIONS.key}={self.counts.text} with default "
                f"{self.counts.default} contradicts the table, which has {stored_counts.text!r} and "
                f"{stored_counts.default}; leave the option out"
            )
        return replace(self, counts=stored_counts)

    @property
    def buckets(self) -> int:
        """Number of buckets of partitions that no rule matches."""
        return self.counts.default

    def hash_of(self, key: str) -> int:
        """Return the hash of a record key; the bucket is the remainder of the division by the number of buckets."""
        return java_list_hash(hashed_values(key, self.fields, legacy_key_split=self.legacy_key_split))

    def bucket_of(self, key: str, partition: str) -> int:
        """Return the bucket of a record key."""
        return self.hash_of(key) % self.counts.of_partition(partition)

    def counts_of(self, partitions: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the number of buckets (int32) of each partition."""
        encoded = _as_array(partitions).dictionary_encode()
        counts = [self.counts.of_partition(path) for path in encoded.dictionary.to_pylist()]
        return pa.array(counts, pa.int32()).take(encoded.indices)

    def check_numbers(self, buckets: pa.Array | pa.ChunkedArray, partitions: pa.Array | pa.ChunkedArray) -> None:
        """Check that the existing buckets (int32) are within these numbers of buckets.

        Raises:
            ConfigError: A bucket has a higher number.
        """
        beyond = pc.greater_equal(_as_array(buckets), self.counts_of(partitions))
        if pc.any(beyond).as_py():
            bucket, partition = (_as_array(column).filter(beyond)[0].as_py() for column in (buckets, partitions))
            count = self.counts.of_partition(partition)
            raise ConfigError(
                f"{options.INITIAL_BUCKETS.key}={count}, but partition {partition!r} has a bucket {bucket}: it "
                "was created with more buckets, whose number cannot be changed. Set the number with which it was "
                "created"
            )

    def check_key(self, key: str, bucket: int, partition: str) -> None:
        """Check that a stored key belongs to its bucket.

        Raises:
            ConfigError: It does not, so the table was created with other settings.
        """
        expected = self.bucket_of(key, partition)
        if expected != bucket:
            raise ConfigError(
                f"the table has the key {key!r} in bucket {bucket}, but with "
                f"{options.INITIAL_BUCKETS.key}={self.counts.of_partition(partition)} and "
                f"{options.BUCKET_HASH_FIELD.key}={','.join(self.fields)} it belongs to bucket {expected}; set "
                "the values with which the table was created"
            )


def _as_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
