"""Callbacks over HTTP after commits."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from pyhudi.config import Options
from pyhudi.errors import ConfigError
from pyhudi.transaction.post_commit.commit_callback import check_callback_options
from tests.http_server import http_server
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

CALLBACK = "hoodie.write.commit.callback."


def options(url: str | None, **more: str) -> dict[str, str]:
    given = {CALLBACK + key.replace("__", "."): value for key, value in more.items()}
    return {CALLBACK + "on": "true", **({} if url is None else {CALLBACK + "http.url": url}), **given}


def test_each_write_is_sent(tmp_path: Path) -> None:
    with http_server() as received:
        more = {"http__custom__headers": " team : data; trace: a:b ", "http__api__key": "secret"}
        mor = MorTable(tmp_path / "t", 9, options={**FAST, **options(received.url, **more)})
        mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
        mor.delta([row("a0", "a", 1, "y")])
    first, second = map(json.loads, received.bodies)
    assert first["tableName"] == "t"
    assert first["basePath"].endswith("/t")
    assert sum(stat["numWrites"] for stat in first["hoodieWriteStat"]) == 6
    assert second["commitActionType"] == "deltacommit"
    assert second["commitTime"] > first["commitTime"]
    assert [stat["partitionPath"] for stat in second["hoodieWriteStat"]] == ["a"]
    assert json.loads(second["extraMetadata"]["schema"])["type"] == "record"
    headers = {name.lower(): value for name, value in received.headers[0].items()}
    assert headers["hudi-callback-key"] == "secret"
    assert (headers["team"], headers["trace"]) == ("data", "a:b")
    assert headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("status", [404, None])
def test_a_callback_that_fails_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int | None
) -> None:
    with http_server(status or 200) as received:
        url = received.url
        if status is not None:
            mor = MorTable(tmp_path / "t", 9, options={**FAST, **options(url)})
            mor.load([row("a0", "a", 0, "x")])
    if status is None:  # nobody listens any more
        mor = MorTable(tmp_path / "t", 9, options={**FAST, **options(url)})
        mor.load([row("a0", "a", 0, "x")])
    failures = [r for r in caplog.records if "the callback" in r.message and r.levelno == logging.WARNING]
    assert len(failures) == 1
    assert url in failures[0].message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (options(None), "requires an HTTP or HTTPS URL"),
        (options("file:///etc/passwd"), "requires an HTTP or HTTPS URL"),
        (options("http://"), "requires an HTTP or HTTPS URL"),
        (options("http://x", http__custom__headers="a"), "invalid header 'a'"),
        (options("http://x", http__custom__headers="a:b\r\nc:d"), "invalid header"),
        (
            options("http://x", **{"class": "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback"}),
            "add_listener",
        ),
    ],
)
def test_bad_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_callback_options(Options.parse(given))
