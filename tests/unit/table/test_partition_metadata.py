from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.config.enums import FileFormat
from pyhudi.errors import CorruptTableError
from pyhudi.storage import Storage, open_storage
from pyhudi.table.partition_metadata import (
    PartitionMetadata,
    depth_of,
    list_partitions,
    partitions_in,
    read_partition_metadata,
    write_partition_metadata,
)

INSTANT = "20261121095417305"
DATA = Path(__file__).parent / "data"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path / "t")


@pytest.mark.parametrize("base_format", [None, FileFormat.PARQUET])
@pytest.mark.parametrize(("partition", "depth"), [("", 0), ("a", 1), ("p=x y/é=1", 2), ("2024/01/05", 3)])
def test_round_trip(storage: Storage, partition: str, depth: int, base_format: FileFormat | None) -> None:
    assert depth_of(partition) == depth
    assert read_partition_metadata(storage, partition) is None
    assert write_partition_metadata(storage, partition, INSTANT, base_format=base_format)
    assert not write_partition_metadata(storage, partition, "20991121095417305", base_format=base_format)
    assert read_partition_metadata(storage, partition) == PartitionMetadata(INSTANT, depth)
    assert list_partitions(storage) == [partition]


def test_text_form(storage: Storage) -> None:
    write_partition_metadata(storage, "r0", INSTANT)
    data = storage.read("r0/.hoodie_partition_metadata")
    lines = data.decode().splitlines()
    assert lines[0] == "#partition metadata"
    assert lines[2:] == [f"commitTime={INSTANT}", "partitionDepth=1"]
    assert len(data) == 96  # as the original's


@pytest.mark.parametrize("extension", ["parquet", "orc"])
def test_base_file_forms_of_the_original(storage: Storage, extension: str) -> None:
    recorded = (DATA / f"hoodie_partition_metadata.{extension}").read_bytes()
    storage.write(f"part/.hoodie_partition_metadata.{extension}", recorded)
    found = read_partition_metadata(storage, "part")
    assert found is not None
    assert found.depth == 1
    assert len(found.commit_time) == 17
    assert list_partitions(storage) == ["part"]


def test_tables_of_orc_files_get_the_text(storage: Storage) -> None:
    write_partition_metadata(storage, "a", INSTANT, base_format=FileFormat.ORC)
    assert storage.list("a")["path"].to_pylist() == ["a/.hoodie_partition_metadata"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (".hoodie_partition_metadata", b""),
        (".hoodie_partition_metadata", b"commitTime=1\n"),
        (".hoodie_partition_metadata", b"commitTime=1\npartitionDepth=x\n"),
        (".hoodie_partition_metadata", b"commitTime=\\u1\n"),
        (".hoodie_partition_metadata.parquet", b"PAR1"),
        (".hoodie_partition_metadata.orc", b""),
    ],
)
def test_broken_files_are_told(storage: Storage, name: str, data: bytes) -> None:
    storage.write(f"a/b/{name}", data)
    with pytest.raises(CorruptTableError, match=r"is not valid partition metadata.*partitionDepth=2 into it"):
        read_partition_metadata(storage, "a/b")


def test_racing_writers(storage: Storage) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: write_partition_metadata(storage, "a", f"2026112109541730{n}"), range(8)))
    assert made.count(True) == 1
    assert read_partition_metadata(storage, "a") == PartitionMetadata(f"2026112109541730{made.index(True)}", 1)


def test_discovery_in_a_listing() -> None:
    paths = [
        ".hoodie_partition_metadata",
        "a/.hoodie_partition_metadata",
        "a/file.parquet",
        "b/c/.hoodie_partition_metadata.parquet",
        "b/c/.hoodie_partition_metadata.orc",
        "d/x.hoodie_partition_metadata",
        "d/.hoodie_partition_metadata.crc",
        ".hoodie/metadata/files/.hoodie_partition_metadata",
        ".hoodie_x/.hoodie_partition_metadata",
    ]
    assert partitions_in(pa.array(paths)) == ["", ".hoodie_x", "a", "b/c"]
    assert partitions_in(pa.chunked_array([paths[:2], paths[2:]])) == ["", ".hoodie_x", "a", "b/c"]
    assert partitions_in(pa.array([], pa.string())) == []
