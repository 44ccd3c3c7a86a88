"""Tables with ORC base files: types that ORC has not, in whatever time zone their writer told times."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa

from pyhudi.api.hudi_table import HudiTable
from pyhudi.format.base_file.base_file_writer import BaseFileSchema
from pyhudi.format.base_file.orc import OrcFileWriter
from pyhudi.read.execution.file_schemas import file_schema
from pyhudi.schema.meta_columns import add_meta_columns
from tests.tables import HandMadeTable

NOW = dt.datetime(2024, 7, 1, 12, 0, 0, 123456, dt.UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("p", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("s", pa.struct([("t", pa.timestamp("us", "UTC"))])),
    ]
)
ROWS = [
    {"id": f"k{i}", "p": "a", "t": NOW + dt.timedelta(hours=i), "n": NOW.replace(tzinfo=None), "s": {"t": NOW}}
    for i in range(3)
]


def make(root: Path) -> HandMadeTable:
    table = HandMadeTable(root, schema=SCHEMA, extension="orc")
    table.write(1, {("a", "f1-0"): [{"id": "k0", "p": "a"}]})
    file = next((root / "a").glob("*.orc"))
    file.unlink()
    full = add_meta_columns(SCHEMA)
    meta = {name: ["20260101000000001"] * len(ROWS) for name in full.names if name.startswith("_hoodie")}
    rows = pa.Table.from_pylist([{**row, **{n: v[i] for n, v in meta.items()}} for i, row in enumerate(ROWS)], full)
    with OrcFileWriter(str(file), BaseFileSchema(full)) as writer:
        writer.write(rows)
    return table


def test_times(tmp_path: Path) -> None:
    make(tmp_path)
    table = HudiTable.for_path(str(tmp_path))
    assert table.scan(columns=list(SCHEMA.names)).to_arrow().sort_by("id").to_pylist() == ROWS
    later = table.scan(filter=[("t", ">", NOW)], columns=["id"])
    assert sorted(later.to_arrow()["id"].to_pylist()) == ["k1", "k2"]
    assert table.scan().count() == 3
    assert table.scan(columns=["p"]).to_arrow().num_rows == 3


def test_columns_of_a_file(tmp_path: Path) -> None:
    table = make(tmp_path)
    path = next((tmp_path / "a").glob("*.orc")).name
    found = file_schema(table.storage, f"a/{path}")
    assert found.field("t").type == SCHEMA.field("t").type
    assert found.field("s").type == SCHEMA.field("s").type
