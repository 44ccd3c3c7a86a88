"""Opening of the catalogs that options name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyhudi.catalog_sync.catalogs.catalog import Catalog
from pyhudi.catalog_sync.catalogs.catalog_kinds import CatalogKind, glue_endpoint, metastore_address
from pyhudi.catalog_sync.catalogs.glue_catalog import GlueCatalog
from pyhudi.catalog_sync.catalogs.hive_metastore_catalog import HiveMetastoreCatalog
from pyhudi.config import Options, options
from pyhudi.hive_metastore.metastore_client import MetastoreClient


@contextmanager
def open_catalog(kind: CatalogKind, opts: Options) -> Iterator[Catalog]:
    """Open a catalog for the duration of a block.

    Args:
        kind: The catalog.
        opts: Options of the sync, and settings of Hive by name.

    Raises:
        ConfigError: Options are incomplete.
        SetupError: The package of its client is not installed.
    """
    catalog = make_catalog(kind, opts)
    try:
        yield catalog
    finally:
        catalog.close()


def make_catalog(kind: CatalogKind, opts: Options) -> Catalog:
    """Return a catalog, which is not asked yet. Arguments and errors are those of `open_catalog`."""
    batch = opts.get_typed(options.HIVE_SYNC_BATCH_NUM)
    if kind is CatalogKind.HIVE_METASTORE:
        return HiveMetastoreCatalog(MetastoreClient(metastore_address(opts)), batch)
    return GlueCatalog(
        glue_endpoint(opts),
        batch=batch,
        skips_archive=opts.get_typed(options.GLUE_SKIP_TABLE_ARCHIVE),
        lists_metadata=opts.get_typed(options.GLUE_METADATA_FILE_LISTING),
    )
