"""The measured compaction of a record index (`bench.metadata_compaction`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import metadata_compaction


def test_a_small_record_index_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["metadata_compaction", "4000", "2"])
    metadata_compaction.main()
    assert "compacted 4,120 records" in capsys.readouterr().out
