"""Options of commit callbacks (https://hudi.apache.org/docs/platform_services_post_commit_callback)."""

from __future__ import annotations

from pyhudi.config.option import flag, integer, optional_integer, optional_text, text

_CALLBACK = "hoodie.write.commit.callback."
_HTTP = _CALLBACK + "http."
_KAFKA = _CALLBACK + "kafka."

CALLBACK_ON = flag(_CALLBACK + "on", False, "If true, each commit of a write is sent to a receiver.")
CALLBACK_CLASS = text(
    _CALLBACK + "class",
    "org.apache.hudi.callback.impl.HoodieWriteCommitHttpCallback",
    "Receiver by its class name in Apache Hudi: `HoodieWriteCommitHttpCallback` or `HoodieWriteCommitKafkaCallback`.",
)
CALLBACK_URL = optional_text(_HTTP + "url", "HTTP or HTTPS URL that receives a POST request with a JSON document.")
CALLBACK_TIMEOUT = integer(_HTTP + "timeout.seconds", 30, "Seconds to wait for the URL.", minimum=1)
CALLBACK_API_KEY = text(
    _HTTP + "api.key", "hudi_write_commit_http_callback", "Value of the header `HUDI-CALLBACK-KEY`."
)
CALLBACK_HEADERS = text(_HTTP + "custom.headers", "", "Further headers, as `name:value;name:value`.")
CALLBACK_KAFKA_SERVERS = optional_text(_KAFKA + "bootstrap.servers", "Servers of Kafka, as `host:port,host:port`.")
CALLBACK_KAFKA_TOPIC = optional_text(_KAFKA + "topic", "Topic that receives a JSON document for each commit.")
CALLBACK_KAFKA_PARTITION = optional_integer(
    _KAFKA + "partition", "Partition of the topic; without it, Kafka chooses one by the name of the table."
)
CALLBACK_KAFKA_ACKS = text(_KAFKA + "acks", "all", "Servers that must have stored a document: `all`, `1` or `0`.")
CALLBACK_KAFKA_RETRIES = integer(_KAFKA + "retries", 3, "Number of retries of a document.")
