"""The command that syncs a table to a catalog."""

from __future__ import annotations

from pathlib import Path

from tests.metastore_server import fake_metastore
from tests.tables import HandMadeTable
from tests.unit.cli.runner import json_rows, pyhudi


def test_sync(tmp_path: Path) -> None:
    made = HandMadeTable(tmp_path / "t")
    made.write(1, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    with fake_metastore() as (uri, state):
        metastore = ("-o", f"hoodie.datasource.hive_sync.metastore.uris={uri}")
        (first,) = json_rows("sync", made.root, *metastore)
        assert (first["database"], first["table"], first["partitions_added"]) == ("default", "t", 1)
        assert list(state.partitions["default", "t"]) == ["p=a"]
        assert "the same" in pyhudi("sync", made.root, *metastore).stdout
    pyhudi("sync", made.root, "-o", "hoodie.datasource.hive_sync.mode=jdbc", code=1)
