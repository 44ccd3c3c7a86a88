"""Bounds of values that depend on a time zone hold in every other zone, too."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.metadata.indexes.expression_index_definition import Expression
from pyhudi.read.pruning.statistics.comparison_pruning import Bounds
from pyhudi.read.pruning.statistics.time_zone_bounds import Zones, in_any_zone, zones_of

INSTANT, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
OFFSETS = st.integers(-18 * 60, 18 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
TIMES = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(9900, 1, 1)).map(lambda t: t.replace(tzinfo=dt.UTC))
FORMS = {"yyyy": "%Y", "yyyy-MM": "%Y-%m", "yyyy/MM/dd": "%Y/%m/%d", "yyyyMMdd HH": "%Y%m%d %H"}
FORMS |= {"yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S"}


def bounds(least: pa.Array, greatest: pa.Array) -> Bounds:
    none = np.zeros(len(least), np.bool_)
    return Bounds(least, greatest, none, none)


@pytest.mark.parametrize(
    ("function", "options", "column", "zones"),
    [
        ("lower", {}, pa.string(), Zones.NONE),
        ("lower", {}, INSTANT, Zones.ROUND),
        ("identity", {}, INSTANT, Zones.NONE),
        ("year", {}, INSTANT, Zones.MOVED),
        ("year", {}, LOCAL, Zones.NONE),
        ("year", {}, pa.date32(), Zones.NONE),
        ("month", {}, INSTANT, Zones.ROUND),
        ("day", {}, pa.date32(), Zones.NONE),
        ("hour", {}, INSTANT, Zones.ROUND),
        ("hour", {}, LOCAL, Zones.NONE),
        ("hour", {}, pa.string(), Zones.ROUND),
        ("date_format", {"format": "yyyy-MM-dd"}, INSTANT, Zones.MOVED),
        ("date_format", {"format": "dd.MM.yyyy"}, INSTANT, Zones.ROUND),
        ("date_format", {"format": "yyyy-MM-dd XXX"}, INSTANT, Zones.ROUND),
        ("from_unixtime", {}, pa.int64(), Zones.MOVED),
        ("unix_timestamp", {}, INSTANT, Zones.NONE),
        ("unix_timestamp", {}, pa.string(), Zones.PARSED),
        ("unix_timestamp", {}, LOCAL, Zones.MOVED),
        ("to_timestamp", {}, pa.string(), Zones.MOVED),
        ("to_timestamp", {"format": "yyyy-MM-dd"}, pa.string(), Zones.PARSED),
        ("to_timestamp", {"format": "yyyy-MM-dd"}, pa.date32(), Zones.MOVED),
        ("to_date", {}, pa.string(), Zones.NONE),
        ("to_date", {"format": "yyyy-MM-dd XXX"}, pa.string(), Zones.PARSED),
        ("to_date", {}, INSTANT, Zones.MOVED),
        ("date_add", {"days": "3"}, pa.date32(), Zones.NONE),
        ("date_sub", {"days": "3"}, INSTANT, Zones.MOVED),
    ],
)
def test_what_depends_on_zones(function: str, options: dict[str, str], column: pa.DataType, zones: Zones) -> None:
    assert zones_of(Expression.from_options(function, "c", options), column) is zones


@given(TIMES, OFFSETS, OFFSETS, st.sampled_from(sorted(FORMS)))
def test_bounds_of_one_zone_hold_in_another(
    time: dt.datetime, written: dt.tzinfo, asked: dt.tzinfo, pattern: str
) -> None:
    here, there = time.astimezone(written), time.astimezone(asked)
    form = FORMS[pattern]
    text = Expression.from_options("date_format", "c", {"format": pattern})
    cases = [
        (Expression.from_options("year", "c", {}), pa.array([here.year], pa.int32()), there.year),
        (Expression.from_options("to_date", "c", {}), pa.array([here.date()], pa.date32()), there.date()),
        (text, pa.array([here.strftime(form)]), there.strftime(form)),
    ]
    for expression, stored, value in cases:
        found = in_any_zone(bounds(stored, stored), expression)
        assert found.minimum[0].as_py() <= value <= found.maximum[0].as_py()
    # a text is a time of day in a zone
    local = time.replace(tzinfo=None)
    mine, theirs = local.replace(tzinfo=written), local.replace(tzinfo=asked)
    seconds = pa.array([int(mine.timestamp())], pa.int64())
    found = in_any_zone(bounds(seconds, seconds), Expression.from_options("unix_timestamp", "c", {}))
    assert found.minimum[0].as_py() <= int(theirs.timestamp()) <= found.maximum[0].as_py()
    micros = pa.array([mine], INSTANT)
    found = in_any_zone(bounds(micros, micros), Expression.from_options("to_timestamp", "c", {}))
    assert found.minimum[0].as_py() <= theirs <= found.maximum[0].as_py()


def test_what_is_no_usual_time_is_not_known() -> None:
    pattern = Expression.from_options("from_unixtime", "c", {"format": "yyyy-MM-dd"})
    least = pa.array(["2020-01-01", "x", None, "+10000-01-01", "0044-03-15", "2020-01-01"])
    greatest = pa.array(["2020-01-31", "y", None, "2020-01-01", "2020-01-01", "9999-12-31"])
    found = in_any_zone(bounds(least, greatest), pattern)
    assert found.minimum.to_pylist() == ["2019-12-30", None, None, None, None, None]
    assert found.maximum.to_pylist() == ["2020-02-02", None, None, None, None, None]
    ends = pa.array([-(2**31), 2020], pa.int32()), pa.array([2020, 2**31 - 1], pa.int32())
    assert in_any_zone(bounds(*ends), Expression.from_options("year", "c", {})).minimum.null_count == 2
