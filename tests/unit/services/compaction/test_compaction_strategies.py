"""Which file slices are compacted, by every strategy of Apache Hudi."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.config import Options
from pyhudi.errors import ConfigError, InvalidOptionError
from pyhudi.services.compaction.compaction_strategies import (
    STRATEGIES,
    Limits,
    StrategyResult,
    apply_strategies,
    named_strategies,
)
from pyhudi.timeline.plans.compaction_plan import OPERATION_SCHEMA

KEY = "hoodie.compaction.strategy"
TODAY = date(2026, 11, 21)
PACKAGE = "org.apache.hudi.table.action.compact.strategy."


def operation(file_id: str, partition: str = "", *, log_bytes: int = 10, logs: int = 1, io: int = 1) -> dict[str, Any]:
    return {
        "partition": partition,
        "file_id": file_id,
        "base_instant": "1",
        "base_file": f"{file_id}.parquet",
        "log_files": [f".{file_id}.log.{i}" for i in range(logs)],
        "log_bytes": log_bytes,
        "read_mb": io // 2,
        "write_mb": io - io // 2,
    }


def chosen(strategy: str, operations: list[dict[str, Any]], **options: object) -> StrategyResult:
    opts = Options.parse({KEY: strategy} | {k.replace("__", "."): v for k, v in options.items()})
    table = pa.Table.from_pylist(operations, schema=OPERATION_SCHEMA)
    return apply_strategies(named_strategies(opts), table, Limits.from_options(opts, TODAY))


def ids(found: StrategyResult) -> list[str]:
    ids: list[str] = found.operations["file_id"].to_pylist()
    return ids


def test_largest_logs_first_up_to_the_target():
    found = chosen(
        "LogFileSizeBasedCompactionStrategy",
        [
            operation("s", "p1", log_bytes=5),
            operation("m", "p2", log_bytes=50, io=6),
            operation("l", log_bytes=99, io=6),
            operation("x", "p3", log_bytes=20),
        ],
        hoodie__compaction__logfile__size__threshold=10,
        hoodie__compaction__target__io=10,
    )
    assert ids(found) == ["l", "m"]  # the one that passes the target is the last
    assert found.left_out == ("p1", "p3")


def test_most_log_files_first():
    operations = [operation("one", "p1"), operation("three", "p2", logs=3), operation("two", logs=2)]
    found = chosen("LogFileNumBasedCompactionStrategy", operations, hoodie__compaction__logfile__num__threshold=2)
    assert ids(found) == ["three", "two"]
    assert found.left_out == ("p1",)


def test_unbounded():
    found = chosen("UnBoundedCompactionStrategy", [operation("a", io=10**6), operation("b")])
    assert ids(found) == ["a", "b"]


@pytest.mark.parametrize(
    "form", ["{:%Y/%m/%d}", "year={0:%Y}/month={0:%m}/day={0:%d}", "{:%Y-%m-%d}", "dt={:%Y-%m-%d}"]
)
def test_by_day(form: str):
    days = {n: form.format(TODAY - timedelta(days=n)) for n in (0, 1, 9, 10, 11, 30, -3)}
    operations = [operation(str(n), path) for n, path in sorted(days.items(), key=lambda item: item[1])]
    limit = {"hoodie__compaction__daybased__target__partitions": 2}
    assert ids(chosen("DayBasedCompactionStrategy", operations, **limit)) == ["-3", "0"]
    recent = chosen("BoundedPartitionAwareCompactionStrategy", operations)
    old = chosen("UnBoundedPartitionAwareCompactionStrategy", operations)
    assert ids(recent) == ["-3", "0", "1", "9", "10"]
    assert ids(old) == ["11", "30"]
    every = {"hoodie__compaction__daybased__target__partitions": 2**31 - 1}
    for strategy in ("DayBasedCompactionStrategy", "BoundedPartitionAwareCompactionStrategy"):
        assert len(ids(chosen(strategy, operations, **every))) == len(days)
    assert not ids(chosen("UnBoundedPartitionAwareCompactionStrategy", operations, **every))


def test_no_day():
    with pytest.raises(ConfigError, match=r"'europe' is not a day.*hoodie.compaction.strategy"):
        chosen("DayBasedCompactionStrategy", [operation("a", "europe")])
    with pytest.raises(ConfigError, match=r"2026/13/01"):
        chosen("DayBasedCompactionStrategy", [operation("a", "2026/13/01")])


def test_by_regex():
    operations = [operation("a", "region=eu/day=1"), operation("b", "region=us/day=1")]
    regex = {"hoodie__compaction__partition__path__regex": "=eu/"}
    assert ids(chosen("PartitionRegexBasedCompactionStrategy", operations, **regex)) == ["a"]
    with pytest.raises(ConfigError, match="requires the option"):
        chosen("PartitionRegexBasedCompactionStrategy", operations)
    with pytest.raises(InvalidOptionError, match="regular expression"):
        chosen("PartitionRegexBasedCompactionStrategy", operations, hoodie__compaction__partition__path__regex="(")


def test_one_after_the_other():
    operations = [operation("a", "eu", logs=1), operation("b", "us", logs=9), operation("c", "eu", logs=2)]
    names = f"{PACKAGE}PartitionRegexBasedCompactionStrategy,{PACKAGE}LogFileNumBasedCompactionStrategy"
    regex = {"hoodie__compaction__partition__path__regex": "eu"}
    assert ids(chosen(names, operations, **regex)) == ["c", "a"]


def test_unknown():
    with pytest.raises(InvalidOptionError, match=r"Mine.*hoodie.compaction.strategy.*LogFileNumBased"):
        named_strategies(Options.parse({KEY: "com.example.Mine"}))


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 5), st.integers(0, 40), st.sampled_from(["p", "q", "r"])),
        max_size=12,
    ),
    st.integers(0, 60),
    st.integers(0, 30),
    st.integers(0, 3),
    st.sampled_from([name for name in STRATEGIES if name.startswith(("LogFile", "Bounded", "UnBoundedC"))]),
)
def test_one_operation_at_a_time(
    raw: list[tuple[int, int, int, str]], target: int, min_bytes: int, min_logs: int, name: str
):
    """The same as taking operations one at a time until the target is reached."""
    if "PartitionAware" in name:
        return
    rows = [operation(str(i), p, log_bytes=b, logs=n, io=io) for i, (b, n, io, p) in enumerate(raw)]
    found = chosen(
        name,
        rows,
        hoodie__compaction__target__io=target,
        hoodie__compaction__logfile__size__threshold=min_bytes,
        hoodie__compaction__logfile__num__threshold=min_logs,
    )
    pool = sorted(rows, key=lambda row: row["partition"])
    if name.startswith("LogFileSize"):
        pool = sorted((r for r in pool if r["log_bytes"] >= min_bytes), key=lambda r: -r["log_bytes"])
    elif name.startswith("LogFileNum"):
        pool = sorted((r for r in pool if len(r["log_files"]) >= min_logs), key=lambda r: -len(r["log_files"]))
    taken, left = [], target
    for one in pool:
        if name.startswith("UnBounded") or left > 0:
            left -= one["read_mb"] + one["write_mb"]
            taken.append(one["file_id"])
    assert ids(found) == taken
    skipped = {row["partition"] for row in rows if row["file_id"] not in taken}
    assert set(found.left_out) == skipped
