"""Which partitions have expired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.config.enums import TtlStrategy
from pyhudi.errors import ConfigError
from pyhudi.storage.table_paths import PARTITION_METADATA
from pyhudi.table import partition_ttl
from pyhudi.table.partition_ttl import PartitionTtl
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView
from tests.unit.services.merge_on_read_table import MorTable, row

DAY = 24 * 3600 * 1000
PREFIX = "hoodie.partition.ttl."
DAYS = {PREFIX + "strategy.days.retain": "10"}
CREATION = {**DAYS, PREFIX + "management.strategy.type": "KEEP_BY_CREATION_TIME"}


@pytest.fixture(params=[6, 8, 9])
def mor(request: pytest.FixtureRequest, tmp_path: Path) -> MorTable:
    """Partitions a and b, written now."""
    made = MorTable(tmp_path / "table", request.param)
    made.load([row("a0", "a", 1, "x"), row("b0", "b", 1, "y")])
    return made


def _expired(mor: MorTable, days_later: float, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]) -> list[str]:
    now = partition_ttl.now_ms()
    with monkeypatch.context() as patch:
        patch.setattr(partition_ttl, "now_ms", lambda: now + int(days_later * DAY))
        table = TableSnapshot.load(mor.client)
        return PartitionTtl.from_options(Options.parse(options)).expired(table, FileSystemView.load(table))


def _made(mor: MorTable, folder: str, instant: str) -> None:
    """Have a write have made a partition."""
    (mor.root / folder / PARTITION_METADATA).write_text(
        f"#partition metadata\ncommitTime={instant}\npartitionDepth=1\n"
    )


def test_by_the_last_write(mor: MorTable, monkeypatch: pytest.MonkeyPatch):
    assert _expired(mor, 9, monkeypatch, DAYS) == []
    assert _expired(mor, 11, monkeypatch, DAYS) == ["a", "b"]
    assert _expired(mor, 11, monkeypatch, {**DAYS, PREFIX + "strategy.partition.selected": "b,c"}) == ["b"]
    assert _expired(mor, 11, monkeypatch, {**DAYS, PREFIX + "strategy.max.delete.partitions": "1"}) == ["a"]


def test_logs_are_writes(mor: MorTable, monkeypatch: pytest.MonkeyPatch):
    base = partition_ttl.newest_instants
    mor.delta([row("a0", "a", 2, "z")])

    def aged(slices: Any) -> Any:
        """As if base files were of another time than logs."""
        old = slices.set_column(
            slices.column_names.index("base_instant"), "base_instant", [["20200101000000000"] * slices.num_rows]
        )
        return base(old)

    monkeypatch.setattr(partition_ttl, "newest_instants", aged)
    assert _expired(mor, 0, monkeypatch, DAYS) == ["b"]
    assert _expired(mor, 11, monkeypatch, DAYS) == ["a", "b"]


def test_by_the_write_that_made_it(mor: MorTable, monkeypatch: pytest.MonkeyPatch):
    now = mor.table.latest_instant
    assert now is not None
    for folder in "ab":
        _made(mor, folder, now)
    assert _expired(mor, 0, monkeypatch, CREATION) == []
    _made(mor, "b", "20200101000000000")
    assert _expired(mor, 0, monkeypatch, CREATION) == ["b"]
    assert _expired(mor, 0, monkeypatch, DAYS) == []
    named = {**DAYS, PREFIX + "strategy.class": "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy"}
    assert _expired(mor, 0, monkeypatch, named) == ["b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no partition would ever expire"),
        ({PREFIX + "strategy.days.retain": "0"}, "no partition would ever expire"),
        ({**DAYS, PREFIX + "strategy.class": "Mine"}, "KeepByTimeStrategy, KeepByCreationTimeStrategy"),
        ({**DAYS, PREFIX + "management.strategy.type": "KEEP"}, "KEEP_BY_CREATION_TIME"),
    ],
)
def test_wrong_options(options: dict[str, str], message: str):
    with pytest.raises(ConfigError, match=message):
        PartitionTtl.from_options(Options.parse(options))


def test_text():
    assert str(PartitionTtl(TtlStrategy.KEEP_BY_TIME, 3)) == "KEEP_BY_TIME, 3 days"
