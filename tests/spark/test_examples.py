"""The examples run as they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_notebook(spark: SparkSession) -> None:
    del spark  # its session is the one that the notebook gets
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "without outputs, which would grow old"
            exec(compile("".join(cell["source"]), "notebook", "exec"), names)
    found = names["table"].scan(columns=["id", "status"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "status": "paid"}, {"id": 2, "status": "new"}, {"id": 4, "status": "new"}]
    assert "orders" in names["table"]._repr_html_()
