"""Settings of the session for object stores apply to writes and to tables by name, as to reads."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from pyhudi.config import Options
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.meta_client import TableMetaClient
from tests.unit.storage.s3_server import running_s3_server

pytest.importorskip("pyspark")

PREFIX = "spark.hadoop.fs.s3a."


class _StreamWriter:
    foreachBatch = None  # noqa: N815


def session(settings: Mapping[str, str]) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(get=lambda key, default=None: settings.get(key, default)))


def test_a_table_is_found_with_the_settings_of_the_session() -> None:
    from pyhudi.spark.sql.sql_table import SqlTable

    with running_s3_server() as server:
        path = f"s3://{server.new_bucket()}/t"
        given = Options.parse({"hoodie.table.name": "t", **server.options})
        TableMetaClient.create(path, TableConfig.for_new_table(given), given)
        keys = {"access.key": "test-id", "secret.key": "test-secret", "endpoint": server.endpoint}
        spark = session({PREFIX + key: value for key, value in keys.items()})
        assert SqlTable.at(spark, path).config.name == "t"
        assert not SqlTable.exists(spark, f"{path}/none")
        # options that are given override those of the session
        elsewhere = session({f"{PREFIX}endpoint": "http://127.0.0.1:1"})
        assert SqlTable.exists(elsewhere, path, server.options)


def test_writes_and_statements_have_the_settings_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyhudi.spark.activation import stream_methods
    from pyhudi.spark.activation.recorded_settings import recorded_settings
    from pyhudi.spark.sql.catalog import CatalogTable
    from pyhudi.spark.sql.commands import command_target
    from pyhudi.spark.sql.commands.ddl import table_definition
    from pyhudi.spark.write import dataframe_writer
    from pyhudi.sql.statements import CreateTable

    spark = session({f"{PREFIX}access.key": "of the session", f"{PREFIX}endpoint.region": "eu"})
    expected = {"fs.s3a.access.key": "given", "fs.s3a.endpoint.region": "eu"}
    given, opened = {"fs.s3a.access.key": "given"}, []

    def stop(*args: Any) -> None:
        options = next(arg for arg in args if isinstance(arg, Mapping))
        opened.append({key: options[key] for key in expected})
        raise InterruptedError

    monkeypatch.setattr(dataframe_writer, "open_storage", stop)
    with pytest.raises(InterruptedError):
        dataframe_writer.write(SimpleNamespace(sparkSession=spark), "s3a://bucket/t", given)  # type: ignore[arg-type]
    monkeypatch.setattr("pyhudi.spark.streaming.sink.StreamingSink", stop)
    writer = _StreamWriter()
    settings = recorded_settings(writer)
    settings.creator, settings.options = SimpleNamespace(sparkSession=spark), {"checkpointLocation": "/c", **given}
    with pytest.raises(InterruptedError):
        stream_methods.start_sink(lambda: None, writer, "s3://bucket/t")
    assert opened == [expected] * 2
    for module in (command_target, table_definition):
        monkeypatch.setattr(module, "session_options", lambda _: given)
    table = CatalogTable(("d", "t"), "s3://bucket/t")
    assert command_target.write_options(spark, table) == expected
    created = table_definition.options_of_new_table(spark, table, CreateTable(("t",)))
    assert {key: created[key] for key in expected} == expected
