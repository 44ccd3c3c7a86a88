"""The harness itself: Apache Hudi writes and reads through it, errors come back, the scenarios' model is right."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.cases import seldom
from tests.interop.harness.oracle import RELEASES, Oracle, OracleError, read_with_hudi_rs
from tests.interop.harness.scenarios import ENGINES, LAYOUTS, PARALLELISM, Model, Scenario, ping_pong_steps
from tests.rows import assert_same_rows

every_release = pytest.mark.parametrize("oracle", [*map(seldom, RELEASES[:-1]), RELEASES[-1]], indirect=True)

ROWS = pa.table({"id": ["a", "b", "c"], "v": [1, 2, None], "ts": [1, 1, 1], "part": ["x", "x", "y"]})
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    **PARALLELISM,
}


@every_release
def test_writes_and_reads(oracle: Oracle, tmp_path: Path) -> None:
    path = tmp_path / "t"
    oracle.write(path, ROWS, {**OPTIONS, "hoodie.datasource.write.operation": "insert"})
    assert_same_rows(oracle.read(path), ROWS)
    assert_same_rows(read_with_hudi_rs(path), ROWS)
    assert oracle.read(path, columns=["v"], where="id = 'b'").to_pylist() == [{"v": 2}]
    assert oracle.read(path, where="id = 'z'").num_rows == 0
    (instant,) = oracle.timeline(path)
    assert (instant.action, instant.state) == ("commit", "COMPLETED")
    assert (instant.completed is None) == (oracle.release == "0.15.0")
    assert oracle.show_commits(path)["commit_time"].to_pylist() == [instant.requested]


@every_release
def test_errors_name_java_causes(oracle: Oracle, tmp_path: Path) -> None:
    with pytest.raises(OracleError, match=r"java\.\S+Exception|org\.apache\.hudi\.\S+Exception"):
        oracle.read(tmp_path / "nothing")
    assert oracle.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["1.2.0"], indirect=True)
def test_the_model_says_what_apache_hudi_does(oracle: Oracle, tmp_path: Path) -> None:
    """If this fails the other tests of the folder compare with a wrong expectation."""
    scenario = Scenario(ENGINES[-1], LAYOUTS[3], event_time=True)
    model = Model(scenario)
    for round_, step in enumerate(ping_pong_steps(scenario.layout), 1):
        options = {**scenario.table_options, **PARALLELISM, **step.options}
        oracle.write(tmp_path / "t", step.rows(scenario, round_), options, step.mode)
        model.apply(step, round_)
        assert_same_rows(oracle.read(tmp_path / "t"), model.table())
