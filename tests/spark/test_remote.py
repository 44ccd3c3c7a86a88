"""Executors and drivers that share nothing with the process that asks: what they need to know must be sent to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import seldom
from tests.spark.remote_job import FEW

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("where", [seldom("cluster"), "connect"])
def test_tables_are_written_and_read(where, tmp_path):
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    job = [sys.executable, "-m", "tests.spark.remote_job", where, str(tmp_path)]
    done = subprocess.run(job, capture_output=True, text=True, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = [[i, -2 * i if i % 7 == 0 else 2 * i] for i in range(40) if i % 5 in (3, 4) and i != 13]
    answers, of_statements, of_streams = json.loads(done.stdout.splitlines()[-1])
    assert answers == [rows] * (2 * len(FEW) if where == "connect" else 8)
    of_vectors = [[20, 0.5**0.5], [20, 0.5]]
    assert of_statements == [[1, 10.0], [2, 8.0], [3, 3.0], [9, 9.0], [20, 0.5], *of_vectors, [23, 0.5]]
    if where == "connect":
        copied = [[i, -2 * i if i == 28 else 2 * i] for i in range(0, 40, 4)]
        assert of_streams == [[*copied, [60, 60], [64, 64]], 2, True]
