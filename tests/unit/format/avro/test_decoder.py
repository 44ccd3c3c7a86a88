"""Choice of the decoder of Avro records."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pyhudi.format.avro import decoder


@pytest.mark.parametrize(
    ("version", "used"), [("1.26.9", False), ("0.20.31", False), ("1.27.0", True), ("2.0.0rc1", True), ("10.1", True)]
)
def test_old_releases_of_polars_are_not_used(monkeypatch: pytest.MonkeyPatch, version: str, used: bool) -> None:
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(__version__=version))
    decoder._polars.cache_clear()
    try:
        assert decoder.has_fast_decoder() is used
    finally:
        decoder._polars.cache_clear()
