"""Commits are sent to a topic of Apache Kafka, as by Apache Hudi's ``HoodieWriteCommitKafkaCallback``, with the library
confluent-kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, InvalidOptionError, SetupError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

_ACKS = ("all", "-1", "0", "1")
_ANY_PARTITION = -1
"""RD_KAFKA_PARTITION_UA: the key chooses the partition."""
_TIMEOUT_SECONDS = 30


def check_kafka_callback(opts: Options) -> None:
    """Check the options of the topic.

    Raises:
        ConfigError: The servers or the topic are missing, or the acknowledgements are none of Kafka's.
        SetupError: The package confluent-kafka is not installed.
    """
    for option in (options.CALLBACK_KAFKA_SERVERS, options.CALLBACK_KAFKA_TOPIC):
        if not opts.get_typed(option):
            raise ConfigError(
                f"{options.CALLBACK_CLASS.key}={opts.get_typed(options.CALLBACK_CLASS)} requires {option.key}"
            )
    acks = opts.get_typed(options.CALLBACK_KAFKA_ACKS)
    if acks not in _ACKS:
        raise InvalidOptionError(options.CALLBACK_KAFKA_ACKS.key, acks, ", ".join(_ACKS))
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as error:
        raise SetupError(
            "callbacks for Kafka require the package confluent-kafka: pip install 'pyhudi[kafka]'"
        ) from error


def publish_commit(document: str, table_name: str, opts: Options) -> None:
    """Send the JSON document of a commit to the topic and wait until the servers have it. The key of the message is the
    name of the table, so that the commits of a table are in order; the partition of a key is that of Apache Hudi's
    clients in Java.

    Raises:
        OSError: The message could not be delivered in time.
    """
    from confluent_kafka import Producer

    servers, topic = (str(opts.get_typed(o)) for o in (options.CALLBACK_KAFKA_SERVERS, options.CALLBACK_KAFKA_TOPIC))
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "acks": opts.get_typed(options.CALLBACK_KAFKA_ACKS),
            "retries": opts.get_typed(options.CALLBACK_KAFKA_RETRIES),
            "partitioner": "murmur2_random",  # as in Java
            "message.timeout.ms": _TIMEOUT_SECONDS * 1000,
        }
    )
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    partition = opts.get_typed(options.CALLBACK_KAFKA_PARTITION)
    chosen = _ANY_PARTITION if partition is None else partition
    producer.produce(topic, document.encode(), table_name.encode(), chosen, on_delivery=delivered)
    waiting = producer.flush(_TIMEOUT_SECONDS + 5)
    if failures or waiting:
        raise OSError(f"topic {topic} of {servers}: {failures[0] if failures else 'not delivered in time'}")
