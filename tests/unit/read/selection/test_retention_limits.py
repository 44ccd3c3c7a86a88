"""Which snapshots time travel refuses, because the cleaner has removed files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError
from tests.tables import HandMadeTable, at

QUIET = {"hoodie.time.generator.max_expected_clock_skew_ms": "0", "hoodie.metadata.enable": "false"}
BY_VERSIONS = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "3"}


def rewritten(path: Path, version: int) -> HandMadeTable:
    """A table with a file group that is rewritten by eight writes between two writes of another one."""
    table = HandMadeTable(path / "t", version)
    for n in range(1, 12):
        group = "slow" if n in (1, 2, 11) else "fast"
        table.write(n, {("a", group): [{"id": group, "p": "a", "v": n}]})
    return table


def values(table: HandMadeTable, n: int) -> dict[str, int]:
    """Return the values by key as of a time."""
    rows = HudiTable.for_path(str(table.root), QUIET).scan(as_of=at(n), columns=["id", "v"]).to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in rows}


@pytest.mark.parametrize("version", [6, 9])
def test_another_policy_does_not_bring_cleaned_snapshots_back(tmp_path: Path, version: int) -> None:
    table = rewritten(tmp_path, version)
    services = HudiTable.for_path(str(table.root), QUIET).services
    assert values(table, 7) == {"slow": 2, "fast": 7}
    services.clean(BY_VERSIONS)
    with pytest.raises(QueryError, match="cleaner has removed"):
        values(table, 7)
    services.clean({"hoodie.clean.commits.retained": "7"})
    with pytest.raises(QueryError, match="cleaner has removed"):
        values(table, 7)
    assert values(table, 11) == {"slow": 11, "fast": 10}


@pytest.mark.parametrize("version", [6, 9])
def test_versions_that_a_clean_has_left_are_read(tmp_path: Path, version: int) -> None:
    table = rewritten(tmp_path, version)
    HudiTable.for_path(str(table.root), QUIET).services.clean(BY_VERSIONS)
    assert values(table, 8) == {"slow": 2, "fast": 8}
    assert values(table, 9) == {"slow": 2, "fast": 9}
    with pytest.raises(QueryError, match=at(8)):
        values(table, 7)


def test_archived_cleans_by_versions_count_too(tmp_path: Path) -> None:
    """Cleans that only the archive has may have deleted files that the active ones do not name."""
    table = rewritten(tmp_path, 9)
    services = HudiTable.for_path(str(table.root), QUIET).services
    services.clean(BY_VERSIONS)
    (cleaned,) = [i for i in table.client().active_timeline().timeline if i.action == "clean"]
    table.write(12, {("a", "fast"): [{"id": "fast", "p": "a", "v": 12}]})
    services.clean(BY_VERSIONS)
    for state in (active := table.active.reload()).states(active.timeline.find(cleaned.requested)):
        active.delete(state)
    table.archive(1, 2, 3, 4, 5, 6, 7)
    with pytest.raises(QueryError, match="cleaner has removed"):
        values(table, 5)
    assert values(table, 12) == {"slow": 11, "fast": 12}
