"""The first content of the metadata table."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.format.file_names import BASE, CDC, LOG
from pyhudi.metadata.reader.metadata_file_listing import list_from_metadata
from pyhudi.metadata.reader.metadata_table import MetadataTable
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.table_snapshot import TableSnapshot
from tests.tables import HandMadeTable, at
from tests.unit.services.merge_on_read_table import FAST


@pytest.mark.parametrize("version", [6, 9])
def test_change_data_files_are_listed(tmp_path: Path, version: int) -> None:
    """Queries of changes take files that are missing there for cleaned ones, and no clean would delete them."""
    table = HandMadeTable(tmp_path / "t", version)
    table.write(10, {("a", "f1"): [{"id": "1", "p": "a", "v": 1}]})
    change_file = f".f1_{at(10)}.log.1_0-10-0.cdc"
    (tmp_path / "t" / "a" / change_file).write_bytes(b"#HUDI#")
    HudiTable.for_path(str(table.root), FAST).alter_schema().add_column("w", "int").commit()
    client = TableMetaClient.open(str(table.root))
    metadata = MetadataTable.open(TableSnapshot.load(client))
    listed = list_from_metadata(metadata, None, (BASE, LOG, CDC))[0]
    assert dict(zip(listed["path"].to_pylist(), listed["size"].to_pylist(), strict=True))[f"a/{change_file}"] == 6
    assert set(list_from_metadata(metadata, None)[0]["kind"].to_pylist()) == {BASE}
