"""What is known of the Python that workers run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyhudi.spark import session
from pyhudi.spark.session import can_run_tasks


def test_a_python_that_does_not_answer_in_time_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(subprocess, "run", slow)
    assert can_run_tasks("/somewhere/slow/python")
    monkeypatch.undo()
    assert not can_run_tasks("/somewhere/without/python")


@pytest.mark.parametrize("version", ["2.7", session._VERSION])
def test_workers_have_the_version_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(session, "_VERSION", version)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert can_run_tasks(str(python)) == (version != "2.7")


@pytest.mark.parametrize("package", ["fastavro", "numpy", "pandas", "pyarrow", "pyroaring", "xxhash"])
def test_workers_have_the_dependencies(tmp_path: Path, package: str) -> None:
    (tmp_path / f"{package}.py").write_text("raise ImportError")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert not can_run_tasks(str(python))
