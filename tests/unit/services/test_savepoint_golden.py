"""Savepoints of Apache Hudi hold the files that ours would."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.services.savepoint import create_savepoint, delete_savepoint, list_savepoints
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.timeline.action_avro import decode_record
from pyhudi.timeline.instant import Action, State

TABLES = Path(__file__).parents[2] / "golden" / "tables"


@pytest.mark.parametrize("name", ["v8_cow_alter", "v9_mor_cluster_restore"])
def test_the_same_files_are_kept(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(TABLES / f"{name}.zip") as file:
        file.extractall(tmp_path)
    client, opts = TableMetaClient.open(str(tmp_path / name)), Options.parse({})

    def record() -> dict[str, set[str]]:
        active = client.active_timeline()
        (entry,) = active.timeline.completed().of_actions(Action.SAVEPOINT)
        found = decode_record(Action.SAVEPOINT, State.COMPLETED, active.read(entry))
        return {p: set(part["savepointDataFile"]) for p, part in found["partitionMetadata"].items()}

    theirs = record()
    (instant,) = list_savepoints(client)["instant"].to_pylist()
    delete_savepoint(client, opts, instant)
    assert not len(list_savepoints(client))
    create_savepoint(client, opts, instant)
    assert record() == theirs
