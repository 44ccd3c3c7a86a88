"""Callbacks after commits, over HTTP and Kafka."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition

from pyhudi import HudiTable
from pyhudi.config import Options
from pyhudi.errors import ConfigError
from pyhudi.transaction.post_commit import kafka_callback
from pyhudi.transaction.post_commit.commit_callback import check_callback_options
from tests.http_server import http_server
from tests.unit.services.merge_on_read_table import FAST, FILE_IDS, MorTable, row

CALLBACK = "hoodie.write.commit.callback."


KAFKA = "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback"


def options(url: str | None, **more: str) -> dict[str, str]:
    given = {CALLBACK + key.replace("__", "."): value for key, value in more.items()}
    return {CALLBACK + "on": "true", **({} if url is None else {CALLBACK + "http.url": url}), **given}


def kafka_options(servers: str, **more: str) -> dict[str, str]:
    given = {"topic": "commits", "bootstrap__servers": servers, **more}
    return options(None, **{"class": KAFKA, **{f"kafka__{key}": value for key, value in given.items()}})


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
        (options("http://x", **{"class": "com.example.OwnCallback"}), "add_listener"),
        (options(None, **{"class": KAFKA, "kafka__topic": "t"}), "requires .*kafka.bootstrap.servers"),
        (options(None, **{"class": KAFKA, "kafka__bootstrap__servers": "h:1"}), "requires .*kafka.topic"),
        (kafka_options("h:1", acks="2"), "kafka.acks.*all, -1, 0, 1"),
        (kafka_options("h:1", partition="first"), "kafka.partition"),
    ],
)
def test_bad_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_callback_options(Options.parse(given))


@pytest.fixture
def kafka_servers() -> Iterator[str]:
    """Addresses of servers with Kafka's protocol, which librdkafka has for tests; they create topics of four
    partitions on demand."""
    cluster = confluent_kafka.Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 2})
    yield ",".join(str(broker).rsplit("/", 1)[0] for broker in cluster.list_topics(timeout=10).brokers.values())
    cluster.flush()  # the servers live as long as their producer


def messages(servers: str, number: int) -> list[Message]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "test"})
    try:
        consumer.assign([TopicPartition("commits", partition, OFFSET_BEGINNING) for partition in range(4)])
        return consumer.consume(number, timeout=20)
    finally:
        consumer.close()


@pytest.mark.parametrize("partition", [None, 3])
def test_each_write_is_a_message_of_kafka(tmp_path: Path, kafka_servers: str, partition: int | None) -> None:
    chosen = {} if partition is None else {"partition": str(partition)}
    mor = MorTable(tmp_path / "t", 9, options={**FAST, **kafka_options(kafka_servers, **chosen)})
    mor.load([row(f"{p}{n}", p, 0, "x") for p in FILE_IDS for n in range(3)])
    mor.delta([row("a0", "a", 1, "y")])
    received = messages(kafka_servers, 2)
    assert [message.key() for message in received] == [b"t", b"t"]
    of_key = 1  # by Kafka's clients in Java: toPositive(murmur2("t")) % 4
    assert {message.partition() for message in received} == {of_key if partition is None else partition}
    first, second = (json.loads(message.value() or b"") for message in received)
    assert (first["tableName"], second["commitActionType"]) == ("t", "deltacommit")
    assert first["commitTime"] < second["commitTime"]
    assert sum(stat["numWrites"] for stat in first["hoodieWriteStat"]) == 6


def test_without_a_server_of_kafka_the_commit_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_callback, "_TIMEOUT_SECONDS", 1)
    mor = MorTable(tmp_path / "t", 9, options={**FAST, **kafka_options("localhost:1")})
    mor.load([row("a0", "a", 0, "x")])
    (failure,) = [r.message for r in caplog.records if "the callback of the commit" in r.message]
    assert "topic commits of localhost:1" in failure
    assert HudiTable.for_path(str(tmp_path / "t")).scan().to_arrow().num_rows == 1
