"""Records that are made of single files, when a table gets its first bloom filters."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.format.base_file.base_file_footer import BloomOptions
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.parquet import read_footer
from pyhudi.format.base_file.parquet_writer import ParquetFileWriter
from pyhudi.format.hfile.hfile_reader import HFileReader
from pyhudi.metadata.file_groups.delta_commit_writer import GroupFiles
from pyhudi.metadata.records.file_group_hash import file_group_index_of
from pyhudi.metadata.records.metadata_keys import bloom_filter_keys
from pyhudi.metadata.records.metadata_record import BLOOM_FILTER_PAYLOAD, decode, record_schema
from pyhudi.metadata.writer import initial_statistics
from pyhudi.metadata.writer.file_records import FileRecords
from pyhudi.metadata.writer.initial_statistics import FILE_FIELDS, LOCAL, InitialFileGroups
from pyhudi.storage import open_storage
from pyhudi.storage.table_paths import METADATA_FOLDER

SCHEMA = pa.schema([("_hoodie_record_key", pa.string())])


def test_filters_come_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is in its file group, in order; files without one have no record, and a group without records no file."""
    monkeypatch.setattr(initial_statistics, "FILTERS_TOGETHER", 2)
    storage, rows, expected = open_storage(tmp_path), [], {}
    for number in range(9):
        name = f"{number}-0_0-0-0_00000000000000001.parquet"
        storage.make_dirs(f"p{number % 2}")
        bloom = BloomOptions(num_entries=100) if number else None
        with ParquetFileWriter(str(tmp_path / f"p{number % 2}" / name), BaseFileSchema(SCHEMA), bloom=bloom) as writer:
            writer.write(pa.table([[f"k{number}"]], schema=SCHEMA))
        rows.append((f"p{number % 2}", name, f"p{number % 2}/{name}", "base"))
        if bloom is not None:
            key = bloom_filter_keys(pa.array([f"p{number % 2}"]), pa.array([name]))[0].as_py()
            expected[key] = read_footer(str(tmp_path / rows[-1][2])).bloom_text
    files = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=list(FILE_FIELDS))
    ids = [f"group-{n}" for n in range(30)]
    groups = InitialFileGroups(GroupFiles(storage, "bloom_filters", "0" * 17, 9), ids)
    stats = LOCAL.blooms(FileRecords(storage, 9, SCHEMA, True, "1"), files, groups)
    found = {}
    for stat in stats:
        reader = HFileReader((tmp_path / METADATA_FOLDER / stat["path"]).read_bytes())
        table = pa.Table.from_batches(reader.batches())
        keys = table["key"].cast(pa.string())
        assert set(file_group_index_of(keys, len(ids))) == {ids.index(stat["fileId"])}
        assert stat["numWrites"] == table.num_rows > 0
        filters = decode(table["value"], record_schema(9))[BLOOM_FILTER_PAYLOAD].to_pylist()
        assert {one["timestamp"] for one in filters} == {"1"}
        found |= dict(zip(keys.to_pylist(), (one["bloomFilter"] for one in filters), strict=True))
    assert found == expected
    assert len(stats) < len(ids)
