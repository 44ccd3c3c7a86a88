"""Check that file slices have the bucket numbers that the settings of the bucket index give to their keys."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.index.bucket_file_ids import bucket_numbers
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.sampled_keys import first_keys
from pyhudi.merge.base_file_readers import read_footer
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map

_FILES_ASKED = 16


def check_buckets(storage: Storage, bucketing: BucketIndex, slices: pa.Table, *, populate_meta_fields: bool) -> None:
    """Check that file slices (SLICE_SCHEMA) of a table with the bucket index match these settings: all bucket numbers
    and, if base files store keys (``populate_meta_fields``), some of those.

    With twice as many buckets every second key would still be in its bucket, so a few keys may match by chance: the
    first and last keys of up to 16 files are checked, and, if these are fewer than 32, some keys inside a file as well.

    Raises:
        ConfigError: They do not match.
    """
    numbers = bucket_numbers(slices["file_id"])
    bucketing.check_numbers(numbers, slices["partition"])
    with_base = slices.select(["partition", "base_path"]).append_column("number", numbers)
    with_base = with_base.filter(pc.is_valid(with_base["base_path"]))
    if not with_base.num_rows or not populate_meta_fields:
        return
    step = -(-with_base.num_rows // _FILES_ASKED)
    samples = with_base.take(pa.array(range(0, with_base.num_rows, step))).to_pylist()
    footers = concurrent_map(lambda row: read_footer(storage, row["base_path"]), samples)
    footer_keys = [{key for key in (footer.min_key, footer.max_key) if key is not None} for footer in footers]
    missing = 2 * _FILES_ASKED - sum(map(len, footer_keys))
    few = -(-missing // len(samples))
    if few > 0:
        more = concurrent_map(lambda row: first_keys(storage, row["base_path"], few), samples)
        footer_keys = [ends.union(some) for ends, some in zip(footer_keys, more, strict=True)]
    for row, some in zip(samples, footer_keys, strict=True):
        for key in sorted(some):
            bucketing.check_key(key, row["number"], row["partition"])
