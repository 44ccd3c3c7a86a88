from __future__ import annotations

import pytest

from pyhudi.report.number_text import bytes_text, count_text, instant_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, ""),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 * 1024**3, "5.0 GiB"),
        (2**60, "1024.0 PiB"),
    ],
)
def test_bytes(size: int | None, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(("n", "text"), [(None, ""), (0, "0"), (336776, "336,776")])
def test_counts(n: int | None, text: str) -> None:
    assert count_text(n) == text


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        ("20261121094947775", "2026-11-21 09:49:47"),
        ("00000000000000010", "00000000000000010"),
        ("20261121094947", "20261121094947"),
    ],
)
def test_instants(instant: str, text: str) -> None:
    assert instant_text(instant) == text
