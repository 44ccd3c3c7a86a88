"""Time formats of queries. The first table is what Apache Hudi 1.2.0 answered (its zone UTC)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from pyhudi.errors import InvalidOptionError
from pyhudi.read.query.query_instants import query_instant, range_instant

ACCEPTED_BY_APACHE_HUDI = [
    ("20261121095447613", "20261121095447613"),
    ("20261121095447", "20261121095447"),
    ("2026-11-21", "20261121000000000"),
    ("2026-11-21 09:54:47", "20261121095447999"),
    ("2026-11-21 09:54:47.613", "20261121095447613"),
    ("2026-11-21T09:54:47", "20261121095447999"),
    ("2026-11-21T09:54:47.613", "20261121095447613"),
    ("2026112109", "20340316085509000"),
    ("1795254887613", "20261121095447613"),
    ("1795254887", "20261121095447000"),
    ("00000000000000", "00000000000000"),
    ("00000000000001", "00000000000001"),
    ("99991231235959999", "99991231235959999"),
]
REFUSED_BY_APACHE_HUDI = [
    "2026-11-21 09:54:47.6",
    "2026-11-21 09:54",
    "2026/11/21",
    "20261121",
    "202611210954",
    "2026-1-2",
    "000",
    "earliest",
    "",
    "abc",
    "2026-11-21 25:00:00",
    "2026112109544761",
    "202611210954476130",
    "20261321095447613",
    "20261121255447613",
    "2026-11-21 09:54:47,613",
    "abcdefghij",
    "00000000000000000",
    "20260000000000000",
]


@pytest.mark.parametrize(("text", "expected"), ACCEPTED_BY_APACHE_HUDI)
def test_accepts_what_apache_hudi_accepts(text, expected):
    assert query_instant(text, timezone="UTC") == expected


@pytest.mark.parametrize("text", [*REFUSED_BY_APACHE_HUDI, "2026-13-21", "2026-11-31", "２０２６-11-21"])
def test_refuses_what_is_no_time_and_says_what_is(text):
    with pytest.raises(InvalidOptionError, match=r"as\.of\.instant.*yyyy-MM-dd") as caught:
        query_instant(text, timezone="UTC")
    assert caught.value.value == text


@pytest.mark.parametrize(
    ("value", "zone", "expected"),
    [
        ("2026-11-21T09:54:47Z", "UTC", "20261121095447999"),
        ("2026-11-21T09:54:47.613+02:00", "UTC", "20261121075447613"),
        ("2026-11-21 09:54:47.613456-0130", "UTC", "20261121112447613"),
        ("2026-07-01T00:00:00.000Z", "Europe/Berlin", "20260701020000000"),
        ("1795254887", "Asia/Tokyo", "20261121185447000"),
        (1795254887613, "UTC", "20261121095447613"),
        (date(2026, 11, 21), "UTC", "20261121000000000"),
        (datetime(2026, 11, 21, 9, 54, 47), "Asia/Tokyo", "20261121095447000"),
        (datetime(2026, 11, 21, 9, 54, 47, 613999, tzinfo=UTC), "UTC", "20261121095447613"),
        (datetime(2026, 11, 21, 9, tzinfo=timezone(timedelta(hours=5))), "UTC", "20261121040000000"),
    ],
)
def test_also_takes_offsets_and_python_times(value, zone, expected):
    assert query_instant(value, timezone=zone) == expected


@pytest.mark.parametrize("text", ["earliest", "EARLIEST", "0", "000", "00000000000000", "00000000000000000", 0])
def test_the_beginning_of_a_range(text):
    assert range_instant(text, "begin") is None


def test_other_bounds_of_a_range_are_points_in_time():
    assert range_instant("2026-11-21", "begin") == "20261121000000000"
    with pytest.raises(InvalidOptionError, match=r"'latest'.*'hoodie\.x'.*earliest"):
        range_instant("latest", "hoodie.x")
