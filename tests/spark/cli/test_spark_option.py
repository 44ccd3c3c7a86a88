"""Commands with ``--spark`` start a session that their service finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.unit.services.merge_on_read_table import FILE_IDS, MorTable, row


def test_an_index_with_a_record_per_row(tmp_path: Path) -> None:
    made = MorTable(tmp_path / "t")
    made.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    command = [sys.executable, "-m", "pyhudi", "index", "build", str(made.root), "record_index", "--output", "json"]
    spark = ["--spark", "local[1]", "--spark-conf", "spark.ui.enabled=false"]
    done = subprocess.run([*command, *spark], capture_output=True, text=True, env=dict(os.environ), timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["partitions"] == ["record_index"]
    assert "record_index" in made.table.config.metadata_partitions
    assert made.table.lookup(["a1"])["id"].to_pylist() == ["a1"]
