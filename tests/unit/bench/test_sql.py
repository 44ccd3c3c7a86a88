"""The SQL benchmark: which engines do what, and what is stored."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from bench import sql


class Fake:
    """An engine that takes 2 seconds, or 1 if it is ours, and longer the first time."""

    def __init__(self, engine: str, folder: Path, rows: int) -> None:
        del folder, rows
        self.engine = engine

    def run(self, work: str, turn: int) -> dict[str, Any]:
        del work
        return {"seconds": (1.0 if self.engine == "ours" else 2.0) + (5 if turn == 0 else 0), "answer": [turn]}

    def stop(self) -> None: ...


def test_some_engines_and_a_file_of_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sql, "Worker", Fake)
    file = tmp_path / "runs.json"
    for engines in (["--engines", "ours", "delta"], ["--engines", "hudi"], []):
        monkeypatch.setattr(sys, "argv", ["sql", "100", "update", "point", "--store", str(file), *engines])
        sql.main()
    first, *others = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "update": {
            "ours": 1.0,
            "delta": 2.0,
            "ratios": {"delta": 0.5},
            "all": {"ours": [6.0, 1.0, 1.0, 1.0], "delta": [7.0, 2.0, 2.0, 2.0]},
        }
    }
    assert "ratios" not in others[1]["update"]
    assert set(others[-1]["point"]) == {"ours", "hudi", "ratios", "all"}
    runs = json.loads(file.read_text())
    assert len(runs) == 6
    assert (runs[0]["rows"], runs[0]["repetitions"], runs[0]["update"]) == (100, 3, first["update"])
