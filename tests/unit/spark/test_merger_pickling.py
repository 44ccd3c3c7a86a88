"""Mergers that cannot be sent to Spark's executors (`pyhudi.spark.merger_pickling`)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from pyhudi import register_merger, unregister_merger
from pyhudi.errors import ConfigError
from pyhudi.read.cdc.cdc_plan import plan_cdc
from pyhudi.read.query.query import InstantRange, Query
from pyhudi.spark.read.cdc_frame import cdc_frame
from pyhudi.table.table_snapshot import TableSnapshot
from tests.unit.merge.mergers import First
from tests.unit.services.merge_on_read_table import MorTable, row


class Locked(First):
    """Has a lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def test_changes_that_tasks_would_have_to_merge(tmp_path: Path) -> None:
    """The error does not wait until rows are fetched."""
    properties = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": Locked.strategy_id,
        "hoodie.datasource.write.payload.class": "",
    }
    mor = MorTable(tmp_path / "t", properties=properties)
    mor.load([row("a0", "a", 1, "x")])
    mor.delta([row("a0", "a", 2, "y")])
    table = TableSnapshot.load(mor.client)
    (first, _) = table.active.timeline.writes()
    no_session: Any = None
    register_merger(Locked())
    try:
        plan = plan_cdc(table, Query(changes=True, instants=InstantRange(begin=first.completion)))
        with pytest.raises(ConfigError, match=r"the merger Locked .*cannot be pickled"):
            cdc_frame(no_session, plan)
    finally:
        unregister_merger(Locked.strategy_id)
