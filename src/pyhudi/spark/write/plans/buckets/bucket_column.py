"""Computation of the bucket of each row as a column of its DataFrame."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType

from pyhudi.index.bucket_hash import bucket_hashes
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY


def with_bucket(rows: DataFrame, spec: KeySpec, bucketing: BucketIndex, name: str) -> DataFrame:
    """Add the bucket (int) of each row to rows that have keys and partition paths; *spec* is the key specification.
    Lazy.

    Only these two columns are sent to Python: Spark itself can only compute Java's hash of a text character by
    character, which takes several times as long.
    """
    fields, counts = spec.record_fields, bucketing.counts

    def buckets(keys: Any, partitions: Any) -> Any:
        hashes = bucket_hashes(_texts(keys), fields, bucketing.fields, legacy_key_split=bucketing.legacy_key_split)
        if not counts.rules:
            return _series(hashes % counts.default)
        return _series(hashes % bucketing.counts_of(_texts(partitions)).to_numpy())

    paths = F.col(PARTITION_PATH) if counts.rules else F.lit("")
    udf: Any = F.pandas_udf(buckets, IntegerType(), F.PandasUDFType.SCALAR)
    return rows.withColumn(name, udf(F.col(RECORD_KEY), paths))


def _texts(series: Any) -> pa.Array:
    texts = pa.array(series, pa.string(), from_pandas=True)
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _series(numbers: npt.NDArray[np.int64]) -> Any:
    return pa.array(numbers, pa.int32()).to_pandas()
