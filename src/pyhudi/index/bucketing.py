"""How the rows of a table are spread over buckets: by which fields, and over how many in each partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.values import BucketEngine, IndexType, TableType
from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.index.hashing import bucket_of

if TYPE_CHECKING:
    from pyhudi.table.config import TableConfig


@dataclass(frozen=True, slots=True)
class Bucketing:
    """``fields`` are the key fields that choose the bucket, ``buckets`` how many a partition has. ``splits_any``: keys
    are taken apart as release 0.15 does (`pyhudi.index.hashing.hash_values`)."""

    fields: tuple[str, ...]
    buckets: int
    splits_any: bool = False
    engine: BucketEngine = BucketEngine.SIMPLE

    @classmethod
    def of(cls, config: TableConfig, opts: Options) -> Bucketing | None:
        """What the options of a write or read say; None: no bucket index.

        Raises:
            ConfigError: a hash field is no key field.
            UnsupportedTableError: a kind of bucket index that is not supported.
        """
        if opts.get_typed(options.INDEX_TYPE) is not IndexType.BUCKET:
            return None
        engine = opts.get_typed(options.BUCKET_ENGINE)
        if engine is BucketEngine.CONSISTENT_HASHING and config.table_type is not TableType.MERGE_ON_READ:
            raise ConfigError(
                f"{options.BUCKET_ENGINE.key}={engine} is for merge-on-read tables only, as in Apache Hudi; take SIMPLE"
            )
        if opts.get_typed(options.BUCKET_PARTITION_EXPRESSIONS):
            raise UnsupportedTableError(
                f"{options.BUCKET_PARTITION_EXPRESSIONS.key}: different numbers of buckets in partitions are not "
                "supported yet"
            )
        fields = opts.get_typed(options.BUCKET_HASH_FIELD) or config.record_keys
        strangers = [name for name in fields if name not in config.record_keys]
        if strangers:
            raise ConfigError(
                f"{options.BUCKET_HASH_FIELD.key} names {', '.join(strangers)}, but a bucket can only be chosen by "
                f"fields of the record key: {', '.join(config.record_keys) or 'this table generates its keys'}"
            )
        if not fields:
            raise ConfigError(f"{options.INDEX_TYPE.key}=BUCKET needs record keys: set {options.RECORDKEY_FIELD.key}")
        return cls(tuple(fields), opts.get_typed(options.INITIAL_BUCKETS), config.version < 8, engine)

    def bucket_of(self, key: str) -> int:
        """The bucket of a record key."""
        return bucket_of(key, self.fields, self.buckets, splits_any=self.splits_any)

    def check_numbers(self, buckets: pa.Array | pa.ChunkedArray) -> None:
        """Look whether the buckets that there are (int32) can be of this number of buckets.

        Raises:
            ConfigError: there are higher numbers.
        """
        most = pc.max(buckets).as_py()
        if most is not None and most >= self.buckets:
            raise ConfigError(
                f"{options.INITIAL_BUCKETS.key}={self.buckets}, but the table has a bucket {most}: it was made with "
                "more buckets, and the number cannot be changed. Give the number that the table was made with"
            )

    def check_key(self, key: str, bucket: int) -> None:
        """Look whether a key that the table has in a bucket belongs there.

        Raises:
            ConfigError: it does not, so the table was made with other settings.
        """
        expected = self.bucket_of(key)
        if expected != bucket:
            raise ConfigError(
                f"the table has the key {key!r} in bucket {bucket}, but by {options.INITIAL_BUCKETS.key}="
                f"{self.buckets} and {options.BUCKET_HASH_FIELD.key}={','.join(self.fields)} it belongs to bucket "
                f"{expected}; give the values that the table was made with"
            )
