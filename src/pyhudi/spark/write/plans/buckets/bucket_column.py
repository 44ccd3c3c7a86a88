"""Computation of the bucket of each row as a column of its DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType

from pyhudi.index.bucket_hash import bucket_hashes
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.execution.arrow_udfs import arrow_function


def with_bucket(rows: DataFrame, spec: KeySpec, bucketing: BucketIndex, name: str) -> DataFrame:
    """Add the bucket (int) of each row to rows that have keys and partition paths; *spec* is the key specification.
    Lazy.

    Only these two columns are sent to Python: Spark itself can only compute Java's hash of a text character by
    character, which takes several times as long.
    """
    fields, counts = spec.record_fields, bucketing.counts

    def buckets(keys: pa.Array, partitions: pa.Array) -> pa.Array:
        hashes = bucket_hashes(keys, fields, bucketing.fields, legacy_key_split=bucketing.legacy_key_split)
        numbers = bucketing.counts_of(partitions).to_numpy() if counts.rules else counts.default
        return pa.array(hashes % numbers, pa.int32())

    paths = F.col(PARTITION_PATH) if counts.rules else F.lit("")
    bucket = arrow_function(buckets, [pa.string(), pa.string()], IntegerType())
    return rows.withColumn(name, bucket(F.col(RECORD_KEY), paths))
