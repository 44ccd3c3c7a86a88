"""Similarity search without Spark, and the distances that all searches have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.api.hudi_table import HudiTable
from pyhudi.errors import QueryError
from pyhudi.read.functions.vector_distance import Metric, array_distances, pair_distances
from pyhudi.read.functions.vector_top_k import nearest_rows
from pyhudi.schema.logical_types.vectors import vector_type
from tests.tables import HandMadeTable

KIND = vector_type(3, pa.float32())
SCHEMA = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", KIND)])
ROWS: list[dict[str, Any]] = [
    {"id": "a", "p": "x", "v": [9, 9, 9]},
    {"id": "b", "p": "x", "v": [1, 2, 3]},
    {"id": "c", "p": "x", "v": None},
    {"id": "d", "p": "y", "v": [2, 4, 7]},
    {"id": "e", "p": "y", "v": [0, 0, 0]},
]
VECTORS = pa.array([row["v"] for row in ROWS], KIND)


def test_distances() -> None:
    query = np.array([1.0, 2.0, 3.0])
    cosine = array_distances(VECTORS, query, Metric.COSINE, "v").to_pylist()
    assert cosine == pytest.approx([1 - 54 / math.sqrt(243 * 14), 0, None, 1 - 31 / math.sqrt(69 * 14), 1])
    l2 = array_distances(VECTORS[1:], query, Metric.L2, "v").to_pylist()
    assert l2 == pytest.approx([0, None, math.sqrt(21), math.sqrt(14)])
    dot = array_distances(VECTORS, query, Metric.DOT_PRODUCT, "v").to_pylist()
    assert dot == pytest.approx([-54, -14, None, -31, 0])
    lists = VECTORS.cast(pa.list_(KIND.value_field))
    for metric in Metric:
        queries = pa.array([[1, 2, 3], None, [1, 2, 3], [1, 2, 3], [1, 2, 3]], KIND)
        one = array_distances(lists, query, metric, "v").to_pylist()
        pairs = pair_distances(VECTORS, queries, metric, "v").to_pylist()
        assert pairs == pytest.approx([None if i == 1 else number for i, number in enumerate(one)])
    assert array_distances(pa.nulls(2, KIND), query, Metric.L2, "v").null_count == 2


def test_bytes_are_compared_as_numbers() -> None:
    values = pa.array([[100, 100, 100, 100], [-128, 0, 0, 1]], vector_type(4, pa.int8()))
    found = array_distances(values, np.array([100.0, 100, 100, 100]), Metric.DOT_PRODUCT, "v").to_pylist()
    assert found == [-40_000, 12_700]


@pytest.mark.parametrize(
    ("name", "metric"), [("COSINE", "cosine"), ("euclidean", "l2"), ("inner_product", "dot_product")]
)
def test_names_of_metrics(name: str, metric: str) -> None:
    assert Metric.parse(name) == metric


def test_nearest_rows_of_batches() -> None:
    random = np.random.default_rng(1)
    numbers = random.normal(size=(500, 3)).astype(np.float32)
    numbers[7] = np.nan
    rows = pa.table({"id": range(500), "v": pa.array(list(numbers), KIND)})
    found = nearest_rows(rows.to_batches(70), rows.schema, "V", (1.0, 0.0, 0.0), k=20, metric=Metric.L2)
    distances = np.linalg.norm(numbers.astype(np.float64) - [1, 0, 0], axis=1)
    assert found["id"].to_pylist() == np.argsort(distances)[:20].tolist()
    assert found.column_names == ["id", "_hudi_distance"]
    everything = nearest_rows(rows.to_batches(70), rows.schema, "v", (1.0, 0.0, 0.0), k=1000, metric=Metric.L2)
    assert everything.num_rows == 500
    assert everything["id"][-1].as_py() == 7


@pytest.fixture
def table(tmp_path: Path) -> HudiTable:
    made = HandMadeTable(tmp_path / "t", schema=SCHEMA)
    made.write(1, {(p, f"f{p}-0"): [row for row in ROWS if row["p"] == p] for p in ("x", "y")})
    return HudiTable.for_path(str(tmp_path / "t"))


def test_search_of_a_table(table: HudiTable) -> None:
    assert table.schema.field("v").type == KIND
    assert sorted(table.scan(columns=["v"]).to_arrow()["v"].to_pylist(), key=str) == sorted(
        (row["v"] for row in ROWS), key=str
    )
    found = table.vector_search([1, 2, 3], "v", 2, columns=["id"]).to_arrow()
    assert found.column_names == ["id", "_hudi_distance"]
    assert found["id"].to_pylist() == ["b", "d"]
    assert found["_hudi_distance"].to_pylist() == pytest.approx([0, 1 - 31 / math.sqrt(69 * 14)])
    filtered = table.vector_search(np.array([1, 2, 3]), "v", metric="l2", filter=[("p", "=", "y")])
    assert filtered.to_arrow()["id"].to_pylist() == ["e", "d"]
    assert table.vector_search(pa.array([1, 2, 3]), "v", 1).to_polars()["id"].to_list() == ["b"]
    assert table.vector_search([1, 2, 3], "v").to_pandas()["id"].tolist() == ["b", "d", "a", "e"]


def test_wrong_arguments(table: HudiTable) -> None:
    for query, column, k, metric, message in (
        ([1, 2], "v", 1, "l2", r"has 2 numbers, but column 'v' is a VECTOR\(3\)"),
        ([1, None, 2], "v", 1, "l2", "no number at position 1"),
        (5, "v", 1, "l2", "must be a list of numbers, not 5"),
        ([1, 2, 3], "id", 1, "l2", "'id' is of the type string; a search needs a column of the type VECTOR"),
        ([1, 2, 3], "w", 1, "l2", "there is no column 'w'"),
        ([1, 2, 3], "v", 0, "l2", "must be a positive integer, not 0"),
        ([1, 2, 3], "v", 1, "manhattan", "no distance metric 'manhattan'; use cosine, l2 or dot_product"),
    ):
        with pytest.raises(QueryError, match=message):
            table.vector_search(query, column, k, metric=metric).to_arrow()  # type: ignore[arg-type]
