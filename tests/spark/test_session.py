"""Setting up a Spark session."""

from __future__ import annotations

import os
import sys
import threading
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError

import pyhudi
from pyhudi import HudiTable
from pyhudi.errors import SetupError
from pyhudi.spark import session, session_settings
from pyhudi.spark.session import check_not_stopped, check_workers
from pyhudi.spark.session_settings import session_setting
from pyhudi.timeline.instant import current_instant, parse_instant
from pyhudi.transaction.transaction import Transaction
from tests.cases import classic


class Builder:
    """Records what a session builder is told."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def config(self, key: str, value: str) -> Builder:
        self.settings[key] = value
        return self


def test_workers_run_this_python(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    builder = Builder()
    assert session.configure_spark(builder) is builder
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert builder.settings == {
        "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    }


def test_another_python_that_was_asked_for_stays(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    session.configure_spark(Builder())
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_a_connect_client_needs_no_java(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://nowhere")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(session, "ensure_java", lambda: pytest.fail("looked for Java"))
    session.configure_spark(Builder())
    assert "PYSPARK_PYTHON" not in os.environ


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({}, r"PySpark is not installed.*pip install 'pyhudi\[spark\]'"),
        ({"pyspark": "3.4.1", "pandas": "2.2"}, r"PySpark 3\.4\.1 is not supported.*3\.5\.4"),
        ({"pyspark": "5.0.0.dev1", "pandas": "2.2"}, r"5\.0\.0\.dev1 is not supported"),
        ({"pyspark": "4.1.0"}, "pandas is not installed"),
        ({"pyspark": "3.5.9", "pandas": "2.2"}, r"3\.5\.9 requires distutils.*pip install setuptools"),
    ],
)
def test_what_is_missing_is_told_with_its_cure(monkeypatch, versions, message):
    monkeypatch.setattr(session, "installed_version", versions.get)
    monkeypatch.setattr(session, "find_spec", {}.get)  # as in Python 3.12 and later
    with pytest.raises(SetupError, match=message):
        session.check_packages()


@pytest.mark.parametrize(
    ("version", "modules"),
    [("3.5.4", {"distutils": object()}), ("3.5.9", {"distutils": object()}), ("4.0.0", {}), ("4.1.0rc1", {})],
)
def test_versions_that_are_served(monkeypatch, version, modules):
    monkeypatch.setattr(session, "installed_version", {"pyspark": version, "pandas": "2.2"}.get)
    monkeypatch.setattr(session, "find_spec", modules.get)
    session.check_packages()


def test_settings_for_one_call_in_several_threads(spark):
    key = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    before = spark.conf.get(key)
    inside, leave = threading.Barrier(3), [threading.Event(), threading.Event()]
    seen: list[str] = []

    def work(number: int) -> None:
        with session_setting(spark, key, "77"):
            inside.wait(30)
            leave[number].wait(30)
            seen.append(spark.conf.get(key))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(30)
    for event, thread in zip(leave, threads, strict=True):
        event.set()
        thread.join(30)
    assert seen == ["77", "77"], "the first to leave takes it from nobody"
    assert spark.conf.get(key) == before


@classic
def test_a_session_that_has_been_stopped(spark, tmp_path):
    """PySpark takes the Java object away from the context, which all sessions of the process share."""
    check_not_stopped(spark)
    table, rows = HudiTable.create(str(tmp_path / "t"), {"hoodie.table.name": "t"}), spark.range(1)
    context = spark.sparkContext
    java, context._jsc = context._jsc, None
    try:
        with pytest.raises(SetupError, match="has been stopped; start one with"):
            check_not_stopped(spark)
        with pytest.raises(SetupError, match="has been stopped"):
            table.insert(rows)
    finally:
        context._jsc = java


@classic
def test_a_session_that_is_stopped_during_a_write(spark, tmp_path, monkeypatch):
    """The write is rolled back, and the next one goes on."""
    table, rows = HudiTable.create(str(tmp_path / "t"), {"hoodie.table.name": "t"}), spark.range(1)
    context = spark.sparkContext
    java, begin = context._jsc, Transaction.to_inflight

    def stop(*arguments):
        begin(*arguments)
        context._jsc = None

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "to_inflight", stop)
        try:
            with pytest.raises(SetupError, match="has been stopped; start one with"):
                table.insert(rows)
        finally:
            context._jsc = java
    assert table.history()["action"].to_pylist() == ["rollback"]
    table.insert(rows)
    assert table.scan().to_arrow().num_rows == 1


def test_nested_settings_of_one_key(spark):
    key, unset = "spark.sql.sources.parallelPartitionDiscovery.threshold", "pyhudi.test.setting"
    before = spark.conf.get(key)
    with session_setting(spark, key, "77"), session_setting(spark, unset, "a"):
        with session_setting(spark, key, "78"), session_setting(spark, unset, "b"):
            assert (spark.conf.get(key), spark.conf.get(unset)) == ("78", "b")
        assert (spark.conf.get(key), spark.conf.get(unset)) == ("77", "a")
        with pytest.raises(Exception, match="many"), session_setting(spark, key, "many"):
            pass
        assert spark.conf.get(key) == "77"
    assert (spark.conf.get(key), spark.conf.get(unset, None)) == (before, None)


@classic
def test_instants_are_in_the_zone_of_the_virtual_machine(spark, monkeypatch):
    """Apache Hudi takes it there, and its next write would be earlier than one in the zone of Python."""
    zone = timezone(timedelta(hours=14))
    monkeypatch.setattr(session_settings, "default_zone", lambda machine: zone if machine is spark._jvm else None)
    for of in (zone, None):
        now = datetime.now(of).replace(tzinfo=None)
        assert abs(now - parse_instant(current_instant("LOCAL"))) < timedelta(minutes=1)
        monkeypatch.setattr("pyhudi.spark.session._PROCESS", -1)  # in a forked process, whose own zone counts
    monkeypatch.undo()
    for name in ("UTC", "+14:00", "Asia/Kolkata", "Nowhere"):
        ids = SimpleNamespace(getId=lambda name=name: name)
        java = SimpleNamespace(time=SimpleNamespace(ZoneId=SimpleNamespace(systemDefault=lambda ids=ids: ids)))
        found = session_settings.default_zone.__wrapped__(SimpleNamespace(java=java))
        assert str(found) == {"+14:00": "UTC+14:00", "Nowhere": "None"}.get(name, name)


def test_a_virtual_machine_that_does_not_tell_its_zone():
    """Some clusters admit only some calls; writes do not fail for that."""

    def refused():
        raise Py4JError("Method public static java.time.ZoneId.systemDefault() is not whitelisted")

    java = SimpleNamespace(time=SimpleNamespace(ZoneId=SimpleNamespace(systemDefault=refused)))
    assert session_settings.default_zone.__wrapped__(SimpleNamespace(java=java)) is None


@pytest.mark.parametrize(
    ("master", "python", "fails"),
    [
        ("local[2]", sys.executable, False),
        ("local[2]", "/bin/false", True),
        ("local[2]", "/no/such/python3", True),
        ("spark://elsewhere:7077", "/no/such/python3", False),
    ],
)
def test_workers_that_cannot_import_us(master, python, fails):
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=python))
    if not fails:
        check_workers(spark)
        return
    with pytest.raises(SetupError, match=f"{python}.*configure_spark.*PYSPARK_PYTHON={sys.executable}"):
        check_workers(spark)
    with pytest.raises(SetupError, match="PYSPARK_PYTHON"):
        pyhudi.activate(spark)
    check_workers(SimpleNamespace())  # a Connect client has no context
