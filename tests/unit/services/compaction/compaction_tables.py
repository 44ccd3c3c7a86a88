"""Helpers of the tests of compaction."""

from __future__ import annotations

from typing import Any

from pyhudi.table.view.file_system_view import FileSystemView
from tests.unit.services.merge_on_read_table import MorTable

VERSIONS = (6, 8, 9)
SMALL = {"hoodie.index.bloom.num_entries": "10", "hoodie.bloom.index.filter.dynamic.max.entries": "10"}


def slices(table: MorTable) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = FileSystemView.load(table.client).latest_slices().to_pylist()
    return found
