"""Log blocks created directly, tables of arbitrary types, and their encoding by fastavro."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import struct
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from pyhudi.format.file_names import parse_names
from pyhudi.format.log.log_block import MAGIC
from pyhudi.schema.converters.arrow_avro import to_avro
from tests.unit.format import golden


def block(kind: int, headers: Mapping[int, str | bytes], content: bytes) -> bytes:
    """Frame a block as Apache Hudi does."""
    entries = [(key, value.encode() if isinstance(value, str) else value) for key, value in headers.items()]
    pairs = b"".join(struct.pack(">ii", key, len(value)) + value for key, value in entries)
    inner = struct.pack(">iii", 1, kind, len(headers)) + pairs + struct.pack(">q", len(content)) + content
    inner += struct.pack(">i", 0)
    length = len(inner) + 8
    return MAGIC + struct.pack(">q", length) + inner + struct.pack(">q", length + len(MAGIC))


def golden_log_files(table: str) -> list[tuple[str, bytes]]:
    """Return names and bytes of a golden table's log files, those of its metadata table and version-6 archives
    included."""
    every = [(name.rpartition("/")[2], data) for name, data in golden.files(table, metadata_table=True)]
    kinds = parse_names(pa.array([name for name, _ in every]))["kind"].to_pylist()
    archives = [name.startswith(".commits_.archive") for name, _ in every]
    return [f for f, kind, archive in zip(every, kinds, archives, strict=True) if kind in ("log", "cdc") or archive]


def framed(datums: Iterable[bytes]) -> bytes:
    """Return the content of an AVRO_DATA block."""
    parts = list(datums)
    return struct.pack(">ii", 3, len(parts)) + b"".join(struct.pack(">i", len(part)) + part for part in parts)


def datums_of(table: pa.Table, schema: str) -> list[bytes]:
    """Return rows as fastavro encodes them."""
    parsed = fastavro.parse_schema(json.loads(schema))
    result = []
    for row in table.to_pylist():
        out = io.BytesIO()
        values = {field.name: _for_fastavro(row[field.name], field.type) for field in table.schema}
        fastavro.schemaless_writer(out, parsed, values)
        result.append(out.getvalue())
    return result


def _for_fastavro(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {key: _for_fastavro(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [_for_fastavro(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _for_fastavro(value[field.name], field.type) for field in kind}
    return value


_TIME = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
_UTC = _TIME.map(lambda t: t.replace(tzinfo=dt.UTC))
_PLAIN: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int64(), st.integers(-200, 200)),
    (pa.float32(), st.floats(allow_nan=False, width=32)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=20)),
    (pa.string(), st.text(alphabet="ab", max_size=300)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), _UTC),
    (pa.timestamp("ms", "UTC"), _UTC.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    (pa.timestamp("us"), _TIME),
    (pa.time64("us"), st.times()),
    *[
        (pa.decimal128(p, s), st.integers(-(10**p) + 1, 10**p - 1).map(lambda n, s=s: Decimal(n).scaleb(-s)))
        for p, s in ((1, 0), (9, 2), (18, 18), (28, 5))
    ],
]


def _optional(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values) if nullable else values


@st.composite
def _kinds(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    shape = draw(st.sampled_from(("plain", "plain", "list", "map", "struct"))) if depth else "plain"
    if shape == "plain":
        return draw(st.sampled_from(_PLAIN))
    if shape == "struct":
        members = draw(st.lists(st.tuples(_kinds(depth=depth - 1), st.booleans()), min_size=1, max_size=3))
        fields = [pa.field(f"m{i}", kind, nullable) for i, ((kind, _), nullable) in enumerate(members)]
        values = {f"m{i}": _optional(inner, nullable) for i, ((_, inner), nullable) in enumerate(members)}
        return pa.struct(fields), st.fixed_dictionaries(values)
    kind, inner = draw(_kinds(depth=depth - 1))
    nullable = draw(st.booleans())
    item = _optional(inner, nullable)
    if shape == "list":
        return pa.list_(pa.field("element", kind, nullable)), st.lists(item, max_size=4)
    entries = st.dictionaries(st.text(max_size=5), item, max_size=3).map(lambda d: list(d.items()))
    return pa.map_(pa.string(), pa.field("value", kind, nullable)), entries


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12) -> tuple[pa.Table, str]:
    """Generate a table with columns of arbitrary types, and its Avro schema."""
    columns = draw(st.lists(st.tuples(_kinds(), st.booleans()), min_size=1, max_size=5))
    schema = pa.schema([pa.field(f"f{i}", kind, nullable) for i, ((kind, _), nullable) in enumerate(columns)])
    rows = draw(st.integers(0, max_rows))
    arrays = [
        pa.array(draw(st.lists(_optional(values, nullable), min_size=rows, max_size=rows)), kind)
        for (kind, values), nullable in columns
    ]
    return pa.Table.from_arrays(arrays, schema=schema), to_avro(schema, "t")


def kryo_samples() -> dict[str, bytes]:
    """Return Kryo bytes of delete blocks as the classes of release 0.15 write them, by name."""
    path = golden.TABLES.parents[1] / "unit" / "format" / "data" / "kryo-deletes-0.15.0.tsv"
    pairs = (line.split("\t") for line in path.read_text().splitlines())
    return {name: base64.b64decode(text) for name, text in pairs}
