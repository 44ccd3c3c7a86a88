"""Runs commands in the process of the test."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from pyhudi.cli.program import program


def pyhudi(*arguments: object, code: int = 0, width: int | None = 120, answer: str | None = None) -> Result:
    """Run a command, and check its exit code. ``width``: that of the terminal; None: a pipe."""
    runner = CliRunner(env={"COLUMNS": None if width is None else str(width)})
    result = runner.invoke(program, [str(argument) for argument in arguments], input=answer)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def json_rows(*arguments: object, code: int = 0) -> list[dict[str, Any]]:
    """Run a command that prints JSON, and return its objects."""
    lines = pyhudi(*arguments, "--output", "json", code=code).stdout.splitlines()
    return [json.loads(line) for line in lines]
