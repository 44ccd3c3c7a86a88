"""Form of timestamps in partition paths, which the folders of a table tell."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.schema.converters.arrow_avro import to_avro
from pyhudi.table.sql_timestamps import has_sql_timestamps
from tests.tables import HandMadeTable

TIMES, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "fields", "folders", "expected"),
    [
        (TIMES, "ts", ["ts=2024-01-02 03%3A04%3A05"], True),
        (TIMES, "ts", ["ts=__HIVE_DEFAULT_PARTITION__", "ts=2024-01-02 03%3A04%3A05"], True),
        (TIMES, "ts", ["2024-01-02 03%3A04%3A05"], True),
        (TIMES, "ts", ["ts=1704164645000000"], False),
        (TIMES, "ts", [], False),
        (TIMES, "p,ts", ["p=a/ts=2024-01-02 03%3A04%3A05"], True),
        (TIMES, "p,ts", ["p=a/ts=1704164645000000"], False),
        (TIMES, "p,ts", [], False),
        (TIMES, "p", ["p=2024-01-02 03%3A04%3A05"], False),
        (LOCAL, "ts", ["ts=2024-01-02 03%3A04%3A05"], False),
    ],
)
def test_folders_of_timestamps(
    tmp_path: Path, kind: pa.DataType, fields: str, folders: list[str], *, expected: bool
) -> None:
    schema = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", kind)])
    properties = {"hoodie.table.partition.fields": fields, "hoodie.table.create.schema": to_avro(schema, "t")}
    client = HandMadeTable(tmp_path, schema=schema, properties=properties).client()
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    assert has_sql_timestamps(client.storage, client.config) is expected


def test_tables_that_no_statement_has_created(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("ts", TIMES)])
    client = HandMadeTable(tmp_path, schema=schema, properties={"hoodie.table.partition.fields": "ts"}).client()
    (tmp_path / "ts=2024-01-02 03%3A04%3A05").mkdir()
    assert not has_sql_timestamps(client.storage, client.config)
