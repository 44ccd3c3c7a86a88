"""The same writes, done by Apache Hudi to one table and by pyhudi to another, come to the same outcome: rows, keys,
partition paths, table properties, commits and their statistics, extra metadata, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import HudiError
from tests.cases import seldom
from tests.interop.harness.both import Both
from tests.interop.harness.oracle import WRITER_OF_VERSION_9, Oracle, OracleError
from tests.interop.harness.outcomes import BASE, CASES, Case
from tests.interop.harness.scenarios import ENGINES, LAYOUTS, PARALLELISM, Scenario
from tests.properties import FACTOR
from tests.rows import assert_same_rows
from tests.spark_arrow import to_arrow

KEYS = ["_hoodie_record_key", "_hoodie_partition_path"]
COUNTS = ["action", "operation", "partitions", "rows_written", "rows_inserted", "rows_updated", "rows_deleted"]
VOLATILE = {"hoodie.table.checksum"}
if WRITER_OF_VERSION_9 == "1.1.1":
    VOLATILE |= {"hoodie.table.partition_extractor_class"}  # only 1.2 stores it

NEWEST = ENGINES[-1]
LIKE_OTHERS = {"commit-time-twice-in-an-insert", "commit-time-flagged-deletes", "global_bloom-update-path-true"}
"""Cases that differ from one that is not skipped in a choice that is made by other cases, too."""


@pytest.mark.parametrize("oracle", [NEWEST.release], indirect=True)
@pytest.mark.parametrize(
    "case",
    [seldom(case) if number % 2 or case.name in LIKE_OTHERS else case for number, case in enumerate(CASES)],
    ids=str,
)
def test_same_outcome(oracle: Oracle, case: Case, spark: Any, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    writer = Both(Scenario(NEWEST, LAYOUTS[0]), ours, oracle, spark)
    for number, write in enumerate(case.writes):
        given = {**BASE, **case.options, **write.options, "hoodie.datasource.write.operation": write.operation}
        options = {key: value for key, value in given.items() if value is not None}
        refusal = _failure(
            partial(oracle.write, theirs, write.rows, {**options, **PARALLELISM}, write.mode), OracleError
        )
        failure = _failure(partial(writer.write_ours, write.rows, options, write.mode), HudiError)
        step = f"step {number} ({write.operation})"
        assert (refusal is None) == (failure is None), f"{step}: Apache Hudi: {refusal}\nours: {failure}"
        if refusal is not None and number == 0:
            return
        if number == 0 and len(case.writes) > 1 and FACTOR < 1:
            continue  # what is left of these rows is compared after the next write, which most cases are about
        if case.they_cannot_read:
            _compare(case, step, writer.read_ours(), to_arrow(spark.read.format("hudi").load(str(theirs))))
        else:
            expected = oracle.read(theirs)
            _compare(case, step, writer.read_ours(), expected)
            if write is case.writes[-1]:
                _compare(case, step, oracle.read(ours), expected)
    _compare_tables(case, pyhudi.HudiTable.for_path(str(ours)), pyhudi.HudiTable.for_path(str(theirs)))


def _failure(call: Callable[[], None], kind: type[Exception]) -> Exception | None:
    try:
        call()
    except kind as error:
        return error
    return None


def _compare(case: Case, step: str, actual: pa.Table, expected: pa.Table) -> None:
    generated = case.name in ("no-record-key", "virtual-keys")
    user = [name for name in expected.column_names if not name.startswith("_hoodie_") or name == "_hoodie_is_deleted"]
    columns = [*([] if generated else KEYS), *(case.compared or user)]
    try:
        assert_same_rows(actual, expected, columns)
    except AssertionError as error:
        raise AssertionError(f"{step}: {error}") from None
    assert actual.column_names == expected.column_names, step


def _compare_tables(case: Case, ours: pyhudi.HudiTable, theirs: pyhudi.HudiTable) -> None:
    own, other = ours.config.properties, theirs.config.properties
    assert {k: v for k, v in own.items() if k not in VOLATILE} == {k: v for k, v in other.items() if k not in VOLATILE}
    if case.counts:
        assert _commits(ours) == _commits(theirs)


def _commits(table: pyhudi.HudiTable) -> list[dict[str, Any]]:
    """What the completed commits say of themselves (Apache Hudi leaves refused writes behind as pending ones)."""
    history = table.history()
    return history.filter(pc.equal(history["state"], "COMPLETED")).select(COUNTS).to_pylist()
