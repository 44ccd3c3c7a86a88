"""Tables of Apache Hudi's Flink writer: the rows of their snapshots, before and after a compaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from tests.cases import seldom
from tests.flink_tables import changed_table


@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("version", [6, seldom(8), 9])
def test_changed_rows(tmp_path: Path, version: int, *, changelog: bool) -> None:
    expected = changed_table(tmp_path / "t", version, changelog=changelog)
    table = HudiTable.for_path(tmp_path / "t")

    def rows() -> dict[str, tuple[int, str]]:
        found = table.scan().to_arrow()
        assert found.num_rows == len(expected)
        return {row["id"]: (row["ts"], row["v"]) for row in found.to_pylist()}

    assert rows() == expected
    assert table.services.compact().num_rows == len(expected)
    assert rows() == expected
    file_ids = table.inspect.file_slices()["file_id"].to_pylist()
    assert {len(file_id) for file_id in file_ids} == {36}
