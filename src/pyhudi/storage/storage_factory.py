"""Factory of storages, from a URI and options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pyhudi.config.options import STORAGE_FSYNC
from pyhudi.errors import ConfigError
from pyhudi.storage.local_storage import LocalStorage
from pyhudi.storage.object_store.object_storage import ObjectStorage
from pyhudi.storage.object_store.object_store_location import PREFIX, ObjectStoreLocation
from pyhudi.storage.storage_protocol import Storage, clean_path, join_path

_KINDS = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
    "memory": "memory",
}
_HADOOP_FILE_SYSTEMS = frozenset({"hdfs", "viewfs"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+")
"""A scheme of URIs; a single letter is a drive."""
_HADOOP_S3 = {
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
}
_HADOOP_TLS = "fs.s3a.connection.ssl.enabled"
_HADOOP_PROVIDERS = "fs.s3a.aws.credentials.provider"
HADOOP_S3_KEYS = (*_HADOOP_S3, _HADOOP_TLS, _HADOOP_PROVIDERS)
"""Settings of S3 that a Spark session may have (with or without the prefix ``spark.hadoop.``)."""
_CREDENTIALS = frozenset({"access_key_id", "aws_access_key_id"})
"""Settings beside which requests are signed, whatever a Spark session has."""


def open_storage(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """Return the storage whose root is ``uri``.

    ``/path``, ``file:/path`` and ``file:///path`` are local; ``s3://``, ``s3a://``, ``gs://``, ``az://``,
    ``abfs[s]://`` and ``wasb[s]://`` are object stores; ``memory://name/…`` is in the memory of this process. URIs are
    literal, as in Hadoop: ``%20`` means these three characters. Options ``pyhudi.storage.<setting>`` are passed to the
    store (``endpoint_url``, ``allow_http``, ``region``, ``access_key_id``, ``account_key``, …). ``fs.s3a.*`` is
    accepted, too. Missing settings are taken from the usual environment variables (``AWS_…``, ``GOOGLE_…``,
    ``AZURE_…``).

    Raises:
        ConfigError: The URI or an option is invalid.
    """
    text = os.fspath(uri)
    options = options or {}
    scheme, _, rest = text.partition("://")
    if not rest and not text.endswith("://"):
        return _local(_without_scheme(text), options)
    scheme = scheme.lower()
    if scheme == "file":
        host, slash, path = rest.partition("/")
        if host.lower() not in ("", "localhost") or not slash:
            raise ConfigError(f"{text!r} has a host {host!r}; a local path is file:///path or /path")
        return _local("/" + path, options)
    kind = _KINDS.get(scheme)
    if kind is None:
        raise _unsupported(scheme, text)
    return ObjectStorage(_location(kind, scheme, rest, options))


def open_sibling(storage: Storage, uri: str) -> Storage:
    """Return the storage whose root is ``uri``, with the settings of another one if it is of the same kind."""
    storage = getattr(storage, "inner", storage)
    return open_storage(uri, storage.settings if isinstance(storage, ObjectStorage) else None)


def _unsupported(scheme: str, text: str) -> ConfigError:
    cure = ""
    if scheme in _HADOOP_FILE_SYSTEMS:
        cure = "; for HDFS, mount it (NFS gateway) or use its S3 gateway"
    elif scheme == "dbfs":
        cure = "; /dbfs/… is the local path of dbfs:/…"
    supported = ", ".join(sorted(_KINDS))
    return ConfigError(f"unsupported scheme {scheme!r} of {text!r}; supported: a local path, file, {supported}{cure}")


def _without_scheme(text: str) -> str:
    """Return the local path of ``file:/path`` or of a path.

    Raises:
        ConfigError: It is a URI of an object store, or of another system, with a single slash, and no local path.
    """
    scheme, colon, path = text.partition(":")
    if not colon or not path.startswith("/"):
        return text.removeprefix("file:")
    if scheme.lower() == "file":
        return path
    if scheme.lower() in _KINDS or scheme.lower() in _HADOOP_FILE_SYSTEMS:
        raise ConfigError(f"{text!r} has no {'bucket' if scheme.lower() in _KINDS else 'host'}; write {scheme}://…")
    if _SCHEME.fullmatch(scheme):
        raise _unsupported(scheme.lower(), text)
    return text


def _local(path: str, options: Mapping[str, str]) -> LocalStorage:
    if not path:
        raise ConfigError("the table path is empty")
    return LocalStorage(path, fsync=options.get(STORAGE_FSYNC.key, STORAGE_FSYNC.default))


def _location(kind: str, scheme: str, rest: str, options: Mapping[str, str]) -> ObjectStoreLocation:
    bucket, _, path = rest.partition("/")
    prefix = clean_path(path.lstrip("/"))
    settings = _settings(kind, options)
    if kind == "az":
        bucket, account, host = _azure_parts(bucket, settings)
        if account:
            settings.setdefault("account_name", account)
        root = join_path(f"az://{bucket}", prefix)
        spark = f"abfss://{bucket}@{host}" if host else f"az://{bucket}"
    else:
        root = join_path(f"{kind}://{bucket}", prefix)
        spark = f"{'s3a' if kind == 's3' else kind}://{bucket}"
    if not bucket:
        raise ConfigError(f"{scheme}://{rest} has no {'container' if kind == 'az' else 'bucket'}")
    home = os.getpid() if kind == "memory" else 0
    return ObjectStoreLocation(kind, bucket, prefix, root, join_path(spark, prefix), settings, home)


def _azure_parts(authority: str, settings: Mapping[str, str]) -> tuple[str, str, str]:
    """Return container, account and host of ``container@account.dfs.core.windows.net`` or of a bare container."""
    container, at, host = authority.partition("@")
    if at:
        return container, host.partition(".")[0], host.replace(".blob.", ".dfs.", 1)
    account = settings.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
    return container, account, f"{account}.dfs.core.windows.net" if account else ""


def _settings(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    explicit: dict[str, str] = {}
    for key, value in options.items():
        if key.startswith(PREFIX) and key != STORAGE_FSYNC.key:
            name = key.removeprefix(PREFIX)
            explicit["endpoint" if name == "endpoint_url" else name] = str(value)
    settings = _hadoop_settings(options) if kind == "s3" else {}
    if explicit.keys() & _CREDENTIALS:
        settings.pop("skip_signature", None)
    return settings | explicit


def _hadoop_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of S3 by those of Hadoop."""
    hadoop = {key.removeprefix("spark.hadoop."): value for key, value in options.items()}
    settings = {name: hadoop[key] for key, name in _HADOOP_S3.items() if hadoop.get(key)}
    endpoint = settings.get("endpoint")
    if endpoint is not None and "://" not in endpoint:
        is_plain = hadoop.get(_HADOOP_TLS, "").strip().lower() == "false"
        settings["endpoint"] = endpoint = f"{'http' if is_plain else 'https'}://{endpoint}"
    if endpoint is not None and endpoint.startswith("http://"):
        settings["allow_http"] = "true"
    first = hadoop.get(_HADOOP_PROVIDERS, "").partition(",")[0].strip()
    if first.rpartition(".")[2] == "AnonymousAWSCredentialsProvider":
        settings["skip_signature"] = "true"
    return settings
