"""Retention rules against a model that looks at one file group at a time."""

from __future__ import annotations

import time
from itertools import groupby

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.config.enums import CleanPolicy
from pyhudi.table.clean_retention import (
    NEEDED_SCHEMA,
    CleanRetention,
    ProtectedFiles,
    earliest_instant_to_retain,
    expired_by_instant,
    expired_files,
)
from pyhudi.table.view.file_slicing import SLICE_SCHEMA
from pyhudi.timeline.instant import Action, Instant, State, millis_of_instant
from pyhudi.timeline.timeline import Timeline
from tests.tables import at

COMMITS, VERSIONS, HOURS = CleanPolicy
NOW = millis_of_instant("20260102000000000", "UTC")


def slice_row(partition: str, group: str, n: int, logs: int = 0, *, base: bool = True) -> dict[str, object]:
    path = f"{partition}/{group}_0-0-0_{at(n)}.parquet"
    log_paths = [f"{partition}/.{group}_{at(n)}.log.{i + 1}_0-0-0" for i in range(logs)]
    return {
        "partition": partition,
        "file_id": group,
        "base_instant": at(n),
        "base_path": path if base else None,
        "base_size": 10 if base else None,
        "log_paths": log_paths,
        "log_sizes": [1] * logs,
    }


def paths(row: dict[str, object]) -> list[str]:
    base = [row["base_path"]] if row["base_path"] else []
    return [str(path) for path in [*base, *row["log_paths"]]]  # type: ignore[misc]


def names(row: dict[str, object]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths(row)]


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, object]]:
    rows = []
    for partition in draw(st.sets(st.sampled_from(["", "a", "b"]), min_size=1)):
        for group in draw(st.sets(st.sampled_from("fgh"))):
            for n in sorted(draw(st.sets(st.integers(1, 12), min_size=1))):
                rows.append(
                    slice_row(partition, f"{partition}{group}", n, draw(st.integers(0, 2)), base=draw(st.booleans()))
                )
    return sorted(rows, key=lambda r: (r["partition"], r["file_id"], r["base_instant"]))


def model(
    rows: list[dict[str, object]],
    retention: CleanRetention,
    earliest: str,
    needed: dict[tuple[str, str], str],
    saved: set[str],
    pending: set[str],
) -> set[str]:
    """The names that go, by the words of the policies."""
    gone: set[str] = set()
    for key, found in groupby(rows, key=lambda r: (str(r["partition"]), str(r["file_id"]))):
        group = list(found)
        planned = [r for r in group if key in needed and str(r["base_instant"]) >= needed[key]]
        opened = [r for r in group if r["base_instant"] in pending and r["base_path"] is None]
        if retention.by_versions:
            counted = [r for r in group if r not in planned and r not in opened]
            keep = retention.versions - (key in needed)
            old = counted[: max(0, len(counted) - keep)]
        else:
            before = [r for r in group if str(r["base_instant"]) < earliest]
            old = [r for r in before[:-1] if r is not group[-1] and r not in planned]
        gone.update(name for r in old if not saved & set(names(r)) for name in names(r))
    return gone


@given(
    tables(),
    st.sampled_from([COMMITS, VERSIONS, HOURS]),
    st.integers(1, 12),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from([("", "f"), ("a", "af"), ("a", "ag")]), st.integers(1, 12)),
    st.data(),
)
def test_what_goes_is_what_the_model_says(
    rows: list[dict[str, object]],
    policy: CleanPolicy,
    earliest: int,
    versions: int,
    needed: dict[tuple[str, str], int],
    data: st.DataObject,
) -> None:
    every = [name for row in rows for name in names(row)]
    saved = set(data.draw(st.lists(st.sampled_from(every), max_size=2))) if every else set()
    pending = {at(n) for n in data.draw(st.sets(st.integers(1, 12), max_size=1))}
    retention = CleanRetention(policy, versions=versions)
    plans = [{"partition": p, "file_id": f, "base_instant": at(n)} for (p, f), n in needed.items()]
    found = expired_files(
        pa.Table.from_pylist(rows, schema=SLICE_SCHEMA),
        SLICE_SCHEMA.empty_table(),
        retention,
        at(earliest),
        ProtectedFiles(
            pa.Table.from_pylist(plans, schema=NEEDED_SCHEMA),
            pa.array([p for row in rows for p in paths(row) if p.rpartition("/")[2] in saved], pa.string()),
            sorted(pending),
        ),
    )
    base_instants = {key: at(n) for key, n in needed.items()}
    expected = model(rows, retention, at(earliest), base_instants, saved, pending)
    assert sorted(found["name"].to_pylist()) == sorted(expected)


def instants(done: list[int], pending: list[int] = []) -> Timeline:  # noqa: B006
    finished = [Instant(at(n), Action.COMMIT, State.COMPLETED, at(n), "") for n in done]
    return Timeline([*finished, *(Instant(at(n), Action.COMMIT, State.INFLIGHT, None, "") for n in pending)])


def test_commits_are_kept_up_to_their_number() -> None:
    keep = CleanRetention(COMMITS, commits=3)
    assert earliest_instant_to_retain(instants([1, 2, 3]), keep, NOW, "UTC") is None
    found = earliest_instant_to_retain(instants([1, 2, 3, 4, 5]), keep, NOW, "UTC")
    assert found is not None
    assert found.requested == at(3)


def test_nothing_is_given_up_that_a_pending_write_may_need() -> None:
    keep = CleanRetention(COMMITS, commits=2)
    found = earliest_instant_to_retain(instants([1, 2, 4, 5, 6], [3]), keep, NOW, "UTC")
    assert found is not None
    assert found.requested == at(2)
    assert earliest_instant_to_retain(instants([2, 3, 4, 5], [1]), keep, NOW, "UTC") is None


def test_hours_count_from_now() -> None:
    keep = CleanRetention(HOURS, hours=2)
    old = "20260101000000000", "20260101030000000", "20260101040000000"
    timeline = Timeline(Instant(i, Action.COMMIT, State.COMPLETED, i, "") for i in old)
    found = earliest_instant_to_retain(timeline, keep, millis_of_instant("20260101045900000", "UTC"), "UTC")
    assert found is not None
    assert found.requested == old[1]
    assert earliest_instant_to_retain(timeline, keep, NOW, "UTC") is None


def test_hours_are_as_long_when_daylight_saving_time_begins() -> None:
    """Two hours before 03:30 in Oslo it was 00:30 on that day, as the clock went from 02:00 to 03:00."""
    keep = CleanRetention(HOURS, hours=2)
    written = "20260329004500000"
    timeline = Timeline([Instant(written, Action.COMMIT, State.COMPLETED, written, "")])
    now = millis_of_instant("20260329033000000", "Europe/Oslo")
    found = earliest_instant_to_retain(timeline, keep, now, "Europe/Oslo")
    assert found is not None
    assert found.requested == written


def test_versions_have_no_earliest_instant() -> None:
    assert earliest_instant_to_retain(instants(list(range(1, 30))), CleanRetention(VERSIONS), NOW, "UTC") is None


def test_many_files_are_planned_quickly() -> None:
    groups, versions = 25_000, 4
    number = np.repeat(np.arange(groups), versions)
    ids = pa.array([f"{n:08d}-0000-4000-8000-000000000000-0" for n in range(groups)]).take(pa.array(number))
    instants = pa.array([at(n) for n in range(versions)]).take(pa.array(np.tile(np.arange(versions), groups)))
    paths = pa.array([f"p/{i}_0-0-0_{t}.parquet" for i, t in zip(ids.to_pylist(), instants.to_pylist(), strict=True)])
    empty = pa.ListArray.from_arrays(pa.array(np.zeros(len(paths) + 1, np.int32)), pa.array([], pa.string()))
    sizes = pa.ListArray.from_arrays(pa.array(np.zeros(len(paths) + 1, np.int32)), pa.array([], pa.int64()))
    columns = [pa.repeat(pa.scalar("p"), len(paths)), ids, instants, paths, pa.repeat(1, len(paths)), empty, sizes]
    slices = pa.Table.from_arrays(columns, schema=SLICE_SCHEMA)
    begun = time.process_time()
    found = expired_files(slices, SLICE_SCHEMA.empty_table(), CleanRetention(), at(versions - 1))
    assert time.process_time() - begun < 3
    assert found.num_rows == groups * (versions - 2)
    assert expired_by_instant(slices, at(versions - 1)).sum() == found.num_rows
