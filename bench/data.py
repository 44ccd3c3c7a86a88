"""The benchmark's input: TPC-H lineitem, and sets of corrections to it.

Made once per scale factor under ``.cache/bench``: ``lineitem/`` (all rows with ``l_shipyear``, the partition column),
``upsert_1/`` and the like (1 % of the rows, drawn at random over the whole table, with a corrected quantity and
comment, plus 0.1 % new rows under new order keys). Rows are streamed, so any scale factor fits into memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.jars import ROOT

KEYS = ("l_orderkey", "l_linenumber")
PARTITION = "l_shipyear"
POINT = ("l_orderkey", "l_linenumber", "l_quantity", "l_comment", PARTITION)
"""What is asked of a row that is looked up by key."""
NEW_SHARE = 0.001
SHARES = {"upsert_1": 0.01, "upsert_10": 0.10}
"""Corrections of copy-on-write tables."""
SMALL_SHARES = {"upsert_02": 0.002, **SHARES}
"""Corrections of merge-on-read tables, which are made for few of them."""
FILES = 4
SEED = 1992


@dataclass(frozen=True)
class Dataset:
    """Folders of Parquet files; ``lookups`` are (order key, line number) pairs that exist."""

    scale: float
    folder: Path
    rows: int
    lookups: list[tuple[int, int]]

    @property
    def lineitem(self) -> Path:
        return self.folder / "lineitem"

    def upsert(self, name: str) -> Path:
        return self.folder / name


def prepare(scale: float) -> Dataset:
    """The data of that scale factor, generated now unless it is there."""
    folder = ROOT / ".cache" / "bench" / f"sf{scale:g}"
    facts = folder / "facts.json"
    if not facts.exists() or not all((folder / name).exists() for name in SMALL_SHARES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        facts.write_text(json.dumps(_generate(scale, folder)))
    known = json.loads(facts.read_text())
    return Dataset(scale, folder, known["rows"], [tuple(pair) for pair in known["lookups"]])


def _generate(scale: float, folder: Path) -> dict[str, object]:
    raw = folder / "raw"
    command = [str(Path(sys.executable).with_name("tpchgen-cli")), "parquet", "--scale-factor", f"{scale:g}"]
    subprocess.run([*command, "--tables", "lineitem", "--output-dir", str(raw)], check=True, stdout=subprocess.DEVNULL)
    source = pq.ParquetFile(next(raw.rglob("*.parquet")))
    rows = source.metadata.num_rows
    offset = _largest_key(source) + 1
    random = np.random.default_rng(SEED)
    sinks = _Sinks(folder, rows)
    lookups: list[list[int]] = []
    for batch in source.iter_batches(batch_size=200_000):
        table = _with_year(pa.Table.from_batches([batch]))
        sinks.write("lineitem", table)
        chance = random.random(table.num_rows)
        new = table.filter(random.random(table.num_rows) < NEW_SHARE)
        new = new.set_column(0, new.schema.field(0), pc.add(new["l_orderkey"], offset))
        for name, share in SMALL_SHARES.items():
            sinks.write(name, pa.concat_tables([_corrected(table.filter(chance < share)), new]))
        picks = table.select(KEYS).take(random.integers(table.num_rows, size=20 if not lookups else 1))
        lookups += [[row[key] for key in KEYS] for row in picks.to_pylist()]
    sinks.close()
    shutil.rmtree(raw)
    return {"rows": rows, "lookups": lookups}


class _Sinks:
    """Parquet files opened at need; lineitem is spread over several so that Spark reads it in parallel."""

    def __init__(self, folder: Path, rows: int) -> None:
        self._folder = folder
        self._per_file = -(-rows // FILES)
        self._open: dict[Path, pq.ParquetWriter] = {}
        self._written = 0

    def write(self, name: str, table: pa.Table) -> None:
        part = self._written // self._per_file if name == "lineitem" else 0
        path = self._folder / name / f"part-{part}.parquet"
        if path not in self._open:
            path.parent.mkdir(exist_ok=True)
            self._open[path] = pq.ParquetWriter(path, table.schema, compression="snappy")
        self._open[path].write_table(table)
        if name == "lineitem":
            self._written += table.num_rows

    def close(self) -> None:
        for writer in self._open.values():
            writer.close()


def _with_year(table: pa.Table) -> pa.Table:
    """Plain types only (the generator may give string views), and the partition column at the end."""
    plain = pa.schema([_plain(field) for field in table.schema])
    return table.cast(plain).append_column(PARTITION, pc.year(table["l_shipdate"]).cast(pa.int32()))


def _plain(field: pa.Field) -> pa.Field:
    text = pa.types.is_string_view(field.type) or pa.types.is_large_string(field.type)
    return pa.field(field.name, pa.string() if text else field.type)


def _corrected(table: pa.Table) -> pa.Table:
    quantity = table.schema.get_field_index("l_quantity")
    comment = table.schema.get_field_index("l_comment")
    kind = table.schema.field(quantity).type
    raised = pc.add(table["l_quantity"], pa.scalar(Decimal(1), kind) if pa.types.is_decimal(kind) else 1).cast(kind)
    table = table.set_column(quantity, table.schema.field(quantity), raised)
    said = pa.repeat(pa.scalar("corrected"), table.num_rows)
    return table.set_column(comment, table.schema.field(comment), said)


def _largest_key(source: pq.ParquetFile) -> int:
    column = source.schema_arrow.get_field_index("l_orderkey")
    groups = range(source.metadata.num_row_groups)
    return max(source.metadata.row_group(group).column(column).statistics.max for group in groups)
