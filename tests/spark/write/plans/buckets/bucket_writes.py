"""Writes to tables with four buckets in each partition, and checks of their files."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from pyhudi.api.hudi_table import HudiTable
from pyhudi.schema.meta_fields import RECORD_KEY
from tests.bucket_numbers import bucket_of as bucket_of_key
from tests.bucket_tables import bucket_index
from tests.spark.model import batch as records
from tests.spark.model import by_event_time

BUCKETS = 4
batch = partial(records, partitions=2)


def bucketed(operation: str, table_type: str, version: int = 9, **more: Any) -> dict[str, Any]:
    """Options of a write with the bucket index to a table that goes by event time."""
    return by_event_time(operation, table_type, version, **{**bucket_index(BUCKETS), **more})


def check_files(path: str) -> None:
    """Every bucket of a partition has one file group, with the keys that belong there."""
    slices = HudiTable.for_path(path).inspect.file_slices().to_pylist()
    groups = [(row["partition"], row["file_id"]) for row in slices]
    assert len({(partition, file_id[:8]) for partition, file_id in groups}) == len(groups)
    assert all(re.fullmatch(r"0000000[0-3]-.{27}-0", file_id) for _, file_id in groups)
    for row in HudiTable.for_path(path).scan(columns=[RECORD_KEY, "_hoodie_file_name"]).to_arrow().to_pylist():
        assert int(row["_hoodie_file_name"][:8]) == bucket_of_key(row[RECORD_KEY], ["id"], BUCKETS)
