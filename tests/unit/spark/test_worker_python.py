"""What is known of the Python that workers run."""

from __future__ import annotations

import subprocess

import pytest

from pyhudi.spark.session import _can_import_us


def test_a_python_that_does_not_answer_in_time_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(subprocess, "run", slow)
    assert _can_import_us("/somewhere/slow/python")
    monkeypatch.undo()
    assert not _can_import_us("/somewhere/without/python")
