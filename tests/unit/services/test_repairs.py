"""Repairs of pending cleans, of properties, and the move of partitions' metadata files."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyhudi
from pyhudi.api.services import TableServices
from pyhudi.config import Options
from pyhudi.config.enums import FileFormat
from pyhudi.errors import BusyError, ConfigError, CorruptTableError, NotAHudiTableError
from pyhudi.table.config import properties_file
from pyhudi.table.config.properties_text import parse_properties
from pyhudi.timeline.heartbeat import HEARTBEAT_FOLDER
from pyhudi.timeline.instant import Action
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

PLAIN = {**FAST, "hoodie.metadata.enable": "false"}
LATE = "29990101000000000"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else is about to put broken properties right."""
    monkeypatch.setattr(properties_file, "_WAITS", (0.0, 0.0))


@pytest.fixture(params=[6, 9])
def mor(tmp_path: Path, request: pytest.FixtureRequest) -> MorTable:
    mor = MorTable(tmp_path / "t", request.param, options=PLAIN)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    return mor


def services(mor: MorTable):
    return TableServices(str(mor.root), Options.parse(PLAIN))


def in_use(mor: MorTable) -> Path:
    active = mor.client.active_timeline()
    active.to_inflight(active.create_requested(Action.DELTA_COMMIT, LATE))
    beat = Path(mor.root, HEARTBEAT_FOLDER, LATE)
    beat.parent.mkdir(parents=True, exist_ok=True)
    beat.touch()
    return beat


def tree(mor: MorTable) -> dict[str, bytes]:
    files = (path for path in Path(mor.root).rglob("*") if path.is_file() and "lock" not in path.name)
    return {str(path): path.read_bytes() for path in files}


def test_pending_cleans_without_a_plan(mor: MorTable) -> None:
    active = mor.client.active_timeline()
    for instant, content in (("29980101000000000", b""), ("29980101000000001", b"Obj\x01 cut off")):
        active.to_inflight(active.create_requested(Action.CLEAN, instant, content))
    before = tree(mor)
    found = services(mor).repair_clean_files(dry_run=True).to_pylist()
    assert tree(mor) == before
    assert [(one["instant"][-1], one["file"].rpartition(".")[2], one["is_repaired"]) for one in found] == [
        (n, state, False) for n in "01" for state in ("inflight", "requested")
    ]
    beat = in_use(mor)
    with pytest.raises(BusyError, match=LATE):
        services(mor).repair_clean_files()
    beat.unlink()
    done = services(mor).repair_clean_files().to_pylist()
    assert done == [{**one, "is_repaired": True} for one in found]
    assert not mor.client.active_timeline().timeline.pending().of_actions(Action.CLEAN).first
    assert services(mor).repair_clean_files().num_rows == 0
    assert "no writes beyond" in services(mor).clean(PLAIN).reason


def test_a_readable_plan_stays(mor: MorTable) -> None:
    for n in range(2):
        mor.delta([row(f"a{n}", "a", 1, "y")])
    services(mor).compact({"hoodie.compact.inline.max.delta.commits": "1"})
    few = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    plan = services(mor).clean(few, dry_run=True)
    assert len(plan)
    active = mor.client.active_timeline()
    content = plan.encode(mor.version, mor.client.storage.uri())
    active.to_inflight(active.create_requested(Action.CLEAN, LATE, content))
    before = tree(mor)
    assert services(mor).repair_clean_files().num_rows == 0
    assert tree(mor) == before


def test_properties_are_put_in_place_of_all(mor: MorTable) -> None:
    rows, path = mor.rows(), Path(mor.root, ".hoodie", "hoodie.properties")
    whole = parse_properties(path.read_bytes())
    wanted = {**whole, "hoodie.table.name": "other", "my.own": "1"}
    before = tree(mor)
    found = services(mor).overwrite_properties(wanted, dry_run=True).to_pylist()
    assert tree(mor) == before
    changed = {one["property"]: (one["old_value"], one["new_value"]) for one in found}
    assert changed["hoodie.table.name"] == ("t", "other")
    assert changed["my.own"] == (None, "1")
    assert services(mor).overwrite_properties(wanted).to_pylist() == found
    assert mor.client.config.properties["my.own"] == "1"
    for damaged in (b"hoodie.table.na", b"", None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        again = services(mor).overwrite_properties(whole).to_pylist()
        assert {one["property"]: one["new_value"] for one in again} == whole
        assert all(one["old_value"] is None for one in again)
        assert mor.rows() == rows
    other = {**whole, "hoodie.table.version": "8"}
    with pytest.raises(ConfigError, match=r"hoodie.table.version=\d.*upgrade or downgrade"):
        services(mor).overwrite_properties(other)
    with pytest.raises(ConfigError, match=r"lack hoodie\.table\.type"):
        services(mor).overwrite_properties({k: v for k, v in whole.items() if k != "hoodie.table.type"})
    in_use(mor)
    with pytest.raises(BusyError):
        services(mor).overwrite_properties(wanted)
    assert parse_properties(path.read_bytes()) == whole


def test_a_table_that_cannot_be_opened_gets_its_properties(mor: MorTable) -> None:
    rows, path = mor.rows(), Path(mor.root, ".hoodie", "hoodie.properties")
    whole = parse_properties(path.read_bytes())
    for damaged, error in ((None, NotAHudiTableError), (b"hoodie.table.na", CorruptTableError)):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        with pytest.raises(error, match=r"recreate it with pyhudi\.overwrite_properties"):
            pyhudi.HudiTable.for_path(str(mor.root))
        found = pyhudi.overwrite_properties(mor.root, whole, dry_run=True)
        assert not path.exists() or path.read_bytes() == damaged
        assert pyhudi.overwrite_properties(mor.root, whole) == found
        assert mor.rows() == rows


def test_properties_of_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotAHudiTableError):
        TableServices(str(tmp_path / "none"), Options.parse({})).overwrite_properties({})


def test_metadata_files_of_partitions_become_base_files(mor: MorTable) -> None:
    rows, before = mor.rows(), tree(mor)
    found = services(mor).migrate_partition_metadata(dry_run=True).to_pylist()
    assert tree(mor) == before
    assert [tuple(one.values()) for one in found] == [(p, True, False, False) for p in sorted(FILE_IDS)]
    beat = in_use(mor)
    with pytest.raises(BusyError):
        services(mor).migrate_partition_metadata()
    beat.unlink()
    done = services(mor).migrate_partition_metadata().to_pylist()
    assert done == [{**one, "is_migrated": True} for one in found]
    for p in FILE_IDS:
        assert [path.name for path in Path(mor.root, p).glob(".hoodie_partition*")] == [
            ".hoodie_partition_metadata.parquet"
        ]
    assert mor.client.config.partition_metadata_format is FileFormat.PARQUET
    assert mor.rows() == rows
    again = services(mor).migrate_partition_metadata().to_pylist()
    assert [tuple(one.values()) for one in again] == [(p, False, True, True) for p in sorted(FILE_IDS)]
