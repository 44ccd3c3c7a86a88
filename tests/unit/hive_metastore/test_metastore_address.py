"""Addresses of Hive metastores."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyhudi.errors import ConfigError
from pyhudi.hive_metastore.metastore_address import MetastoreAddress, find_uris
from pyhudi.hive_metastore.partition_names import partition_name

FOLDERS = ("HIVE_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "HIVE_HOME")


def site(folder: Path, **settings: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    properties = "".join(
        f"<property><name>{name.replace('__', '.')}</name><value>{value}</value></property>"
        for name, value in settings.items()
    )
    (folder / "hive-site.xml").write_text(f"<?xml version='1.0'?><configuration>{properties}</configuration>")


@pytest.fixture(autouse=True)
def _no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FOLDERS:
        monkeypatch.delenv(name, raising=False)


def test_uris() -> None:
    address = MetastoreAddress.parse("thrift://one:1, two:2,thrift://[::1]")
    assert address.hosts == (("one", 1), ("two", 2), ("::1", 9083))
    assert str(address).startswith("the Hive metastore at one:1,two:2")


@pytest.mark.parametrize("uris", ["", " , ", "http://one:1", "thrift://one:port", "thrift://:9083"])
def test_uris_of_another_form(uris: str) -> None:
    with pytest.raises(ConfigError, match="thrift://host:9083"):
        MetastoreAddress.parse(uris)


def test_settings_come_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_uris({}) is None
    site(tmp_path / "spark" / "conf", metastore__thrift__uris="thrift://file:1")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    assert find_uris({}) == "thrift://file:1"
    assert find_uris({"hive.metastore.uris": "thrift://session:1"}) == "thrift://session:1"
    site(tmp_path / "hive", hive__metastore__uris="thrift://hive:1")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path / "hive"))
    assert find_uris({}) == "thrift://hive:1"


def test_connections_that_are_not_supported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.enabled=true: Kerberos"):
        find_uris({"hive.metastore.sasl.enabled": "true"})
    site(tmp_path, hive__metastore__use__SSL="true")
    monkeypatch.setenv("HIVE_CONF_DIR", str(tmp_path))
    with pytest.raises(ConfigError, match=r"use\.SSL=true: TLS"):
        find_uris({})
    (tmp_path / "hive-site.xml").write_text("<configuration>")
    with pytest.raises(ConfigError, match=r"cannot read the configuration of Hive in .*hive-site\.xml"):
        find_uris({})


def test_names_of_partitions() -> None:
    assert partition_name(["Day", "city"], ["2024/01", "São [1]"]) == "day=2024%2F01/city=São %5B1%5D"
    assert partition_name(["p"], [""]) == "p=__HIVE_DEFAULT_PARTITION__"
