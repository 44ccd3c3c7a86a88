"""Addresses of a Hive metastore, from options or from the configuration files of Hive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from xml.etree import ElementTree

from pyhudi.errors import ConfigError

URIS = "hive.metastore.uris"
"""Hive's setting of the addresses; Hive 3 and later also call it `metastore.thrift.uris`."""
SPELLINGS = (URIS, "metastore.thrift.uris")
_PORT = 9083
_FILE = "hive-site.xml"
_FOLDERS = (("HIVE_CONF_DIR", ""), ("SPARK_CONF_DIR", ""), ("SPARK_HOME", "conf"), ("HIVE_HOME", "conf"))
_NOT_SUPPORTED = {
    "hive.metastore.sasl.enabled": "Kerberos (SASL)",
    "hive.metastore.use.SSL": "TLS",
    "hive.metastore.thrift.framed.transport.enabled": "the framed transport",
    "hive.metastore.thrift.compact.protocol.enabled": "the compact protocol",
}
"""Settings of connections that the client does not make, and what they mean."""
SETTINGS = (*SPELLINGS, *_NOT_SUPPORTED)
"""Settings of Hive that count for connections."""


@dataclass(frozen=True, slots=True)
class MetastoreAddress:
    """Servers of one metastore, tried in this order.

    Attributes:
        hosts: Names and ports.
        timeout_s: Seconds to wait for a response.
    """

    hosts: tuple[tuple[str, int], ...]
    timeout_s: float

    @classmethod
    def parse(cls, uris: str, timeout_s: float = 600.0) -> Self:
        """Parse ``thrift://host:port,…``. Without a port, it is 9083.

        Raises:
            ConfigError: There is no address, or one has another form.
        """
        hosts = tuple(_host(uri.strip()) for uri in uris.split(",") if uri.strip())
        if not hosts:
            raise ConfigError(f"no address of a Hive metastore in {uris!r}; the form is thrift://host:9083,…")
        return cls(hosts, timeout_s)

    def __str__(self) -> str:
        return "the Hive metastore at " + ",".join(f"{host}:{port}" for host, port in self.hosts)


def _host(uri: str) -> tuple[str, int]:
    parts = urlsplit(uri if "://" in uri else f"thrift://{uri}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "thrift" or not host:
        raise ConfigError(f"{uri!r} is no address of a Hive metastore; the form is thrift://host:9083")
    return host, port or _PORT


def find_uris(settings: Mapping[str, str]) -> str | None:
    """Return the addresses in Hive's settings, or in hive-site.xml; None if neither has any.

    Args:
        settings: Settings of Hive by name, which take precedence over the file.

    Raises:
        ConfigError: The settings or the file require a kind of connection that is not supported.
    """
    site = _hive_site()
    both = {**site, **settings}
    for key, meaning in _NOT_SUPPORTED.items():
        if both.get(key, "").strip().lower() == "true":
            raise ConfigError(
                f"{key}=true: {meaning} is not supported in connections to the Hive metastore; name an address without "
                "it"
            )
    named = [places[key] for places in (settings, site) for key in SPELLINGS if places.get(key)]
    return named[0] if named else None


def _hive_site() -> dict[str, str]:
    """Return the settings of the first hive-site.xml in the folders of the environment; none without one."""
    for variable, below in _FOLDERS:
        folder = os.environ.get(variable)
        file = Path(folder, below, _FILE) if folder else None
        if file is not None and file.is_file():
            return _properties(file)
    return {}


def _properties(file: Path) -> dict[str, str]:
    try:
        root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
    except (OSError, ElementTree.ParseError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration of Hive in {file}: {error}") from error
    named = ((one.findtext("name") or "", one.findtext("value") or "") for one in root.iter("property"))
    return {name.strip(): value.strip() for name, value in named}
