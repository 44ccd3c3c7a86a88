"""Record positions in headers."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from pyhudi.errors import FormatError
from pyhudi.format.log.record_positions import decode_positions, encode_positions


def test_examples_of_apache_hudi() -> None:
    assert decode_positions("AQAAAAAAAAAAAAAAOjAAAAEAAAAAAAEAEAAAAAAAAQA=").tolist() == [0, 1]
    assert decode_positions("AQAAAAAAAAAAAAAAOzAAAAEAAAMAAQAAAAMA").tolist() == [0, 1, 2, 3]
    assert encode_positions(np.arange(4)) == "AQAAAAAAAAAAAAAAOzAAAAEAAAMAAQAAAAMA"


_RANGES = st.tuples(st.integers(0, 2**34), st.integers(1, 70_000), st.integers(1, 5)).map(
    lambda r: set(range(r[0], r[0] + r[1], r[2]))
)


@given(st.one_of(st.sets(st.integers(0, 2**40)), _RANGES), st.booleans())
def test_round_trip(values: set[int], runs: bool) -> None:
    expected = sorted(values)
    assert decode_positions(encode_positions(np.array(expected[::-1], np.int64))).tolist() == expected
    bitmap = BitMap64(values)
    if runs:
        bitmap.run_optimize()
    assert decode_positions(base64.b64encode(bitmap.serialize()).decode()).tolist() == expected


SAMPLES = [
    [0, 1, 7],
    list(range(5)),
    [1, 2**33],
    [*range(0, 10_000, 2)],
    [*range(70_000)][::1],
    [3, 70_000, 140_000, 210_000, 280_000],
]


@pytest.mark.parametrize("values", SAMPLES)
def test_damaged_bitmaps(values: list[int]) -> None:
    """Never anything but positions in ascending order, or an error."""
    bitmap = BitMap64(values)
    bitmap.run_optimize()
    raw = bitmap.serialize()
    places = range(len(raw)) if len(raw) < 300 else [*range(60), *range(len(raw) - 10, len(raw))]
    for at in places:
        for broken in (raw[:at], *(raw[:at] + bytes((raw[at] ^ 1 << bit,)) + raw[at + 1 :] for bit in range(8))):
            try:
                found = decode_positions(base64.b64encode(broken).decode())
            except FormatError:
                continue
            assert (np.diff(found) > 0).all()
            assert len(found) <= 8 * len(raw) + 65_536 * 5


def test_other_texts_are_refused() -> None:
    for text in ("", "!", "AQ==", "ü", "AQAAAAAAAAAAAAAAOzAAAAEAAAMAAQAAAAMA" * 2):
        with pytest.raises(FormatError):
            decode_positions(text)
