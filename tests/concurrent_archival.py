"""A table whose commits another process archives while a query begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from tests.tables import HandMadeTable


def archive_after_first_pin(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[HandMadeTable, list[TableSnapshot]]:
    """Make a table with the rows ``("x", 2)`` and ``("y", 3)``, of whose three commits two are archived once its
    timeline has been listed for the first time, before files of it are read.

    Returns:
        The table, and a list to which each of its snapshots is added.
    """
    table = HandMadeTable(root)
    table.write(1, {("a", "f1"): [{"id": "x", "v": 1}]})
    table.write(2, {("a", "f2"): [{"id": "x", "v": 2}]}, action="replacecommit", replaced=[("a", "f1")])
    table.write(3, {("a", "f3"): [{"id": "y", "v": 3}]})
    load, pinned = TableSnapshot.load, []

    def archived_after_the_first(client: TableMetaClient) -> TableSnapshot:
        pinned.append(load(client))
        if len(pinned) == 1:
            table.remove(1, "a", "f1")
            table.archive(1, 2)
        return pinned[-1]

    monkeypatch.setattr(TableSnapshot, "load", archived_after_the_first)
    return table, pinned
