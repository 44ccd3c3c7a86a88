"""Catalogs that options name, and their addresses."""

from __future__ import annotations

from enum import Enum

from pyhudi.catalog_sync.catalogs.glue_catalog import GlueEndpoint
from pyhudi.config import Options, options
from pyhudi.config.aws_settings import aws_credentials, aws_region
from pyhudi.config.option import split_names
from pyhudi.errors import ConfigError
from pyhudi.hive_metastore.metastore_address import MetastoreAddress, find_uris


class CatalogKind(Enum):
    """Kind of catalog, by Apache Hudi's tool."""

    HIVE_METASTORE = "HiveSyncTool"
    GLUE = "AwsGlueCatalogSyncTool"


_MODES = {"hms": CatalogKind.HIVE_METASTORE, "glue": CatalogKind.GLUE}
_JDBC_URL = "hoodie.datasource.hive_sync.jdbcurl"
"""Option of Apache Hudi with the address of HiveServer2."""
_SET_METASTORE = (
    f"set {options.HIVE_SYNC_METASTORE_URIS.key}=thrift://host:9083, or hive.metastore.uris in the Spark session "
    "(spark.hadoop.hive.metastore.uris) or in a hive-site.xml of the folder HIVE_CONF_DIR"
)
_LEGACY_GLUE = "AWSGlueCatalogSyncTool"
"""Name of the tool in earlier releases."""


def catalog_kinds(opts: Options) -> tuple[CatalogKind, ...]:
    """Return the catalogs that a table is synced to.

    Raises:
        ConfigError: Options ask for another catalog, or for another way to change it.
    """
    mode = opts.get_typed(options.HIVE_SYNC_MODE)
    if mode and mode.lower() not in _MODES:
        raise ConfigError(
            f"{opts.spelling(options.HIVE_SYNC_MODE)}={mode}: HiveServer2 is not asked; set hms, whose requests go to "
            f"the metastore and have the same result, and name the metastore: {_SET_METASTORE}"
        )
    jdbc, catalog = options.HIVE_SYNC_USE_JDBC, options.HIVE_SYNC_USE_SPARK_CATALOG
    if opts.get_typed(jdbc) and not mode:
        raise ConfigError(
            f"{jdbc.key}=true: HiveServer2 is not asked; set {options.HIVE_SYNC_MODE.key}=hms, and name the metastore: "
            f"{_SET_METASTORE}"
        )
    if opts.get_typed(catalog):
        raise ConfigError(f"{catalog.key}=true is not supported: leave it out, and name the metastore of the session")
    if not opts.is_set(options.META_SYNC_TOOL_CLASS) and mode:
        return (_MODES[mode.lower()],)
    tools = split_names(opts.get_typed(options.META_SYNC_TOOL_CLASS))
    return tuple(dict.fromkeys(_kind(tool, opts) for tool in tools))


def _kind(tool: str, opts: Options) -> CatalogKind:
    name = tool.rpartition(".")[2].replace(_LEGACY_GLUE, CatalogKind.GLUE.value)
    known = {kind.value: kind for kind in CatalogKind}
    if name not in known:
        raise ConfigError(
            f"{opts.spelling(options.META_SYNC_TOOL_CLASS)}={tool}: only Hive metastores and AWS Glue are synced, by "
            "org.apache.hudi.hive.HiveSyncTool and org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool; run the tool of "
            "the other catalog yourself"
        )
    return known[name]


def metastore_address(opts: Options) -> MetastoreAddress:
    """Return the metastore of the options, or of Hive's own settings.

    Raises:
        ConfigError: No metastore is named.
    """
    uris = opts.get_typed(options.HIVE_SYNC_METASTORE_URIS) or find_uris(opts)
    if not uris:
        server, _, _ = (opts.get(_JDBC_URL) or "").partition(";")  # settings after that may have a password
        not_asked = f"{_JDBC_URL}={server}: HiveServer2 is not asked, and " if server else ""
        raise ConfigError(f"{not_asked}the Hive metastore is not known: {_SET_METASTORE}")
    return MetastoreAddress.parse(uris)


def glue_endpoint(opts: Options) -> GlueEndpoint:
    """Return the address and the credentials of AWS Glue.

    Raises:
        ConfigError: Options are incomplete.
    """
    return GlueEndpoint(
        aws_region(opts.get_typed(options.GLUE_REGION)),
        opts.get_typed(options.GLUE_ENDPOINT),
        aws_credentials(opts),
        opts.get_typed(options.GLUE_CATALOG_ID),
    )
