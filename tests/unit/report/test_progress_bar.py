"""Bars of progress, and services that call back."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from pyhudi.report import progress_bar
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

OPTIONS = {**FAST, "hoodie.metadata.enable": "false"}
Calls = list[tuple[str, int, int]]


def made(folder: Path) -> MorTable:
    mor = MorTable(folder, 9, options=OPTIONS)
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    for n in range(4):
        mor.delta([row("a0", "a", n + 1, "y"), row("b0", "b", n + 1, "y")])
    return mor


def test_services_call_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mor, calls = made(tmp_path / "t"), Calls()

    def progress(what: str, done: int, total: int) -> None:
        calls.append((what, done, total))
        raise RuntimeError("of no consequence")

    services = mor.table.services
    assert services.compact(progress=progress)
    assert calls == [("compact file slices", 1, 2), ("compact file slices", 2, 2)]
    calls.clear()
    versions = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert services.clean(versions, progress=progress).counts["files"] == 10
    assert calls[-1] == ("delete files", 10, 10)
    calls.clear()
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    done = services.archive(keep, progress=progress)
    assert calls == [
        ("archive instants", 0, len(done.instants)),
        ("archive instants", len(done.instants), len(done.instants)),
    ]
    calls.clear()
    start = mor.delta([row("a0", "a", 9, "y")])
    mor.delta([row("a0", "a", 10, "z")])
    assert services.restore(start, progress=progress)
    assert calls == [("undo writes", 1, 1)]
    assert mor.rows()["a0"]["v"] == "y"
    assert all("of no consequence" in record.message for record in caplog.records if record.name == "pyhudi.metrics")


def test_pending_plans_call_back(tmp_path: Path) -> None:
    mor, calls = made(tmp_path / "t"), Calls()

    def progress(what: str, done: int, total: int) -> None:
        calls.append((what, done, total))

    services, few = mor.table.services, {"hoodie.log.compaction.blocks.threshold": "2"}
    assert services.schedule_log_compaction(few).instant
    assert services.run_log_compaction(options=few, progress=progress)
    assert calls == [("compact file slices", 1, 2), ("compact file slices", 2, 2)]
    calls.clear()
    assert services.schedule_compaction().instant
    assert services.run_compaction(progress=progress)
    assert calls == [("compact file slices", 1, 2), ("compact file slices", 2, 2)]


def test_bars(tmp_path: Path) -> None:
    text = io.StringIO()
    with progress_bar(Console(file=text, force_terminal=True, width=80)) as progress:
        assert made(tmp_path / "t").table.services.compact(progress=progress)
        progress("other work", 1, 4)
    shown = text.getvalue()
    assert "compact file slices" in shown
    assert "100%" in shown
    assert "other work" in shown
    assert "25%" in shown
