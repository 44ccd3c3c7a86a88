"""The examples of the guide run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pyhudi.metrics import in_memory_metrics
from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row

GUIDE = Path(__file__).parents[3] / "docs" / "observability.md"


def test_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mor = MorTable(tmp_path / "trips")
    mor.load([row(f"{p}1", p, 0, "x") for p in FILE_IDS])
    names: dict[str, Any] = {"path": str(mor.root)}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "observability.md", "exec"), names)
    assert "t.savepoint.duration" in in_memory_metrics()
    assert "t.savepoint.duration" in capsys.readouterr().out
