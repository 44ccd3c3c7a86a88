"""Arrow values as JSON text, against the json module."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pyhudi.read.cdc.json_text import json_objects
from tests.properties import examples

KIND = pa.struct(
    [
        ("text", pa.string()),
        ("number", pa.int64()),
        ("float", pa.float64()),
        ("bytes", pa.binary()),
        ("list", pa.list_(pa.string())),
        ("map", pa.map_(pa.string(), pa.int32())),
        ("inner", pa.struct([("flag", pa.bool_())])),
    ]
)
TEXT = st.text(max_size=6) | st.sampled_from(['"', "\\", "\n\x00\x1f", "\\u0041"])
ROWS = st.fixed_dictionaries(
    {
        "text": st.none() | TEXT,
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "float": st.none() | st.floats(),
        "bytes": st.none() | st.binary(max_size=7),
        "list": st.none() | st.lists(st.none() | TEXT, max_size=3),
        "map": st.none() | st.dictionaries(TEXT, st.none() | st.integers(-9, 9), max_size=2),
        "inner": st.none() | st.fixed_dictionaries({"flag": st.none() | st.booleans()}),
    }
)


def plain(row: dict[str, Any] | None) -> Any:
    """The row as JSON has it."""
    if row is None:
        return None
    found = dict(row)
    if found["bytes"] is not None:
        found["bytes"] = base64.b64encode(found["bytes"]).decode()
    number = found["float"]
    if number is not None and not math.isfinite(number):
        found["float"] = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return found


@settings(deadline=None, max_examples=examples(100))
@given(rows=st.lists(st.none() | ROWS, max_size=6), start=st.integers(0, 3))
def test_rows_come_back_from_their_json(rows: list[dict[str, Any] | None], start: int) -> None:
    entries = [row and {**row, "map": None if row["map"] is None else list(row["map"].items())} for row in rows]
    texts = json_objects(pa.array(entries, KIND)[start:]).to_pylist()
    assert [None if text is None else json.loads(text) for text in texts] == [plain(row) for row in rows[start:]]


def test_times_are_the_numbers_that_are_stored() -> None:
    kind = pa.struct([("day", pa.date32()), ("ms", pa.timestamp("ms")), ("money", pa.decimal128(5, 2))])
    rows = pa.array(
        [{"day": 1, "ms": 2, "money": "1.50"}],
        pa.struct([("day", pa.int32()), ("ms", pa.int64()), ("money", pa.string())]),
    )
    columns = [child.cast(field.type) for child, field in zip(rows.flatten(), kind, strict=True)]
    (text,) = json_objects(pa.StructArray.from_arrays(columns, fields=list(kind))).to_pylist()
    assert text == '{"day":1,"ms":2000,"money":1.50}'
