"""Sizes of written files, and write amplification."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi import HudiTable
from tests.golden.expected import unpack


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    return HudiTable.for_path(str(unpack("v8_cow_replace", tmp_path).path))


def test_file_sizes(table: HudiTable) -> None:
    *writes, every = table.inspect.file_sizes().to_pylist()
    commits = table.inspect.commits().to_pylist()
    assert every["instant"] == "ALL"
    assert every["files"] == len(commits)
    sizes = [row["file_size"] for row in commits]
    assert (every["smallest"], every["largest"]) == (min(sizes), max(sizes))
    assert every["mean"] == pytest.approx(sum(sizes) / len(sizes))
    assert every["smallest"] <= every["percentile_10"] <= every["median"] <= every["percentile_95"] <= every["largest"]
    assert [row["instant"] for row in writes] == sorted({row["requested"] for row in commits}, reverse=True)


def test_write_amplification(table: HudiTable) -> None:
    *writes, every = table.inspect.write_amplification().to_pylist()
    assert every["instant"] == "ALL"
    assert every["rows_written"] == sum(row["rows_written"] for row in writes)
    for row in writes:
        updated, written = row["rows_updated"], row["rows_written"]
        assert row["amplification"] == (pytest.approx(written / updated) if updated else None)


def test_tables_without_writes(tmp_path: Path) -> None:
    table = HudiTable.create(str(tmp_path / "t"), {"hoodie.table.name": "t"})
    assert not len(table.inspect.file_sizes())
    assert not len(table.inspect.write_amplification())
    assert not len(table.inspect.metadata_partitions())
