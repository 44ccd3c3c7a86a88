"""What is known of the Python that workers run."""

from __future__ import annotations

import subprocess

import pytest

from pyhudi.spark.session import can_import_pyhudi


def test_a_python_that_does_not_answer_in_time_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(subprocess, "run", slow)
    assert can_import_pyhudi("/somewhere/slow/python")
    monkeypatch.undo()
    assert not can_import_pyhudi("/somewhere/without/python")
