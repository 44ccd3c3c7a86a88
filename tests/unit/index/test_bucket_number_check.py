"""Settings of the bucket index, checked against the keys in base files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import ConfigError
from pyhudi.index.bucket_counts import BucketCounts
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.bucket_number_check import check_buckets
from pyhudi.table.view.file_system_view import FileSystemView
from tests.bucket_numbers import bucket_of
from tests.tables import HandMadeTable

BUCKET = "00000007-63b9-435b-8b8d-18c2684745c2-0"


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_another_number_of_buckets_is_not_taken_because_one_key_agrees(tmp_path: Path, extension: str) -> None:
    table = HandMadeTable(tmp_path, extension=extension)
    keys = [f"k{i}" for i in range(60)]
    keys.sort(key=lambda key: bucket_of(key, ["id"], 8) != bucket_of(key, ["id"], 4))  # those that agree come first
    files: dict[int, list[dict[str, str]]] = {}
    for key in keys:
        files.setdefault(bucket_of(key, ["id"], 4), []).append({"id": key, "p": "x"})
    table.write(1, {("x", f"0000000{number}{BUCKET[8:]}"): rows[:9] for number, rows in files.items()})
    client = table.client()
    slices = FileSystemView.load(client).latest_slices()

    def check(buckets: int) -> None:
        check_buckets(
            client.storage, BucketIndex(("id",), BucketCounts(buckets), False), slices, populate_meta_fields=True
        )

    check(4)
    assert all(bucket_of(rows[0]["id"], ["id"], 8) == number for number, rows in files.items())
    with pytest.raises(ConfigError, match="belongs to bucket"):
        check(8)
