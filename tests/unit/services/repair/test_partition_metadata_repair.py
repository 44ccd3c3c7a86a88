"""Repair of partitions that have lost their metadata files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import InstantNotFoundError
from pyhudi.services.repair.partition_metadata_repair import repair_partition_metadata
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

PLAIN = {**FAST, "hoodie.metadata.enable": "false"}


@pytest.mark.parametrize("version", [6, 9])
def test_lost_metadata_files_of_partitions_are_written_again(tmp_path: Path, version: int) -> None:
    mor = MorTable(tmp_path / "t", version, options=PLAIN)
    with pytest.raises(InstantNotFoundError, match="no completed write"):
        repair_partition_metadata(mor.client)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    rows = mor.rows()
    partitions = sorted(FILE_IDS)
    (lost,) = Path(mor.root, partitions[0]).glob(".hoodie_partition_metadata*")
    lost.unlink()
    for _ in range(2):
        found = repair_partition_metadata(mor.client).to_pylist()
        assert [tuple(one.values()) for one in found] == [(p, p != partitions[0], False) for p in partitions]
    assert not lost.exists()
    assert HudiTable.for_path(str(mor.root), PLAIN).scan().count() < len(rows)
    services = HudiTable.for_path(str(mor.root), PLAIN).services
    assert not any(services.repair_partition_metadata(dry_run=True)["is_repaired"].to_pylist())
    found = services.repair_partition_metadata().to_pylist()
    assert [one["is_repaired"] for one in found] == [p == partitions[0] for p in partitions]
    assert lost.exists()
    assert mor.rows() == rows
    assert all(one["is_present"] for one in repair_partition_metadata(mor.client, dry_run=False).to_pylist())
