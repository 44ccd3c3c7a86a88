"""Text that is not UTF-8, which other writers' files can have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError
from pyhudi.format.utf8_validation import with_valid_text

CELLS = [b"abc", None, b"\xff\xfe", "schön".encode(), b"sch\xf6n"]
TEXTS = ["abc", None, "\ufffd\ufffd", "schön", "sch\ufffdn"]
BAD = pa.array(CELLS).view(pa.string())
OTHER = pa.array(range(len(CELLS)))
MAP = pa.MapArray.from_arrays(pa.array([0, 2]), BAD.take(pa.array([2, 4])), OTHER[:2])
NESTED: list[tuple[pa.Array, list[Any]]] = [
    (BAD, TEXTS),
    (BAD.slice(1), TEXTS[1:]),
    (pa.DictionaryArray.from_arrays(pa.array([0, 2, 4, 2]), BAD), [TEXTS[i] for i in (0, 2, 4, 2)]),
    (pa.StructArray.from_arrays([BAD, OTHER], ["x", "n"]), [{"x": x, "n": n} for n, x in enumerate(TEXTS)]),
    (pa.ListArray.from_arrays(pa.array([0, 3, None, 5]), BAD), [TEXTS[:3], TEXTS[3:], None]),
    (pa.ListArray.from_arrays(pa.array([0, 1, 3, 5]), BAD).slice(1), [TEXTS[1:3], TEXTS[3:]]),
    (
        pa.MapArray.from_arrays(pa.array([0, 2]), BAD.take(pa.array([2, 4])), OTHER[:2]),
        [[(TEXTS[2], 0), (TEXTS[4], 1)]],
    ),
]
IDS = ["plain", "slice", "dictionary", "struct", "list", "slice of lists", "map"]


@pytest.mark.parametrize(("column", "expected"), NESTED, ids=IDS)
def test_text_that_is_not_utf8(column: pa.Array, expected: list[Any]) -> None:
    batch = pa.record_batch({"n": pa.nulls(len(column), pa.int64()), "c": column})
    with pytest.raises(FormatError, match=r"column 'c'.*not UTF-8.*pyhudi.read.invalid.text=replace"):
        with_valid_text(batch)
    found = with_valid_text(batch, InvalidText.REPLACE)
    assert found.schema == batch.schema
    found.validate(full=True)
    assert found.column("c").to_pylist() == expected


def test_other_damage_is_not_replaced() -> None:
    offsets = pa.array([0, 4, 2, 5], pa.int32()).buffers()[1]
    column = pa.Array.from_buffers(pa.list_(pa.string()), 3, [None, offsets], children=[BAD])
    with pytest.raises(FormatError, match="'c' has invalid values"):
        with_valid_text(pa.record_batch({"c": column}), InvalidText.REPLACE)


@pytest.mark.parametrize(
    "values", [[], [None], ["a" * 40], ["ü", "x" * 9, None], ["a" * 7 + "ü"], ["\U0001f600"]], ids=repr
)
@pytest.mark.parametrize("invalid", InvalidText)
def test_text_is_taken(values: list[str | None], invalid: InvalidText) -> None:
    column = pa.array(values, pa.string())
    for batch in (
        pa.record_batch({"c": column, "s": pa.StructArray.from_arrays([column], ["x"])}),
        pa.record_batch({"c": BAD.slice(0, 2)}),  # what lies behind a slice is not its own
    ):
        assert with_valid_text(batch, invalid) is batch
