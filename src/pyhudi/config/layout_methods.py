"""Methods of writers that determine how Spark's own tables are laid out, which have no meaning for Hudi tables."""

from __future__ import annotations

from pyhudi.errors import ConfigError

_CURES = {
    "bucketBy": "set hoodie.index.type=BUCKET and hoodie.bucket.index.num.buckets; the record key, or the columns of "
    "hoodie.bucket.index.hash.field, determine the bucket",
    "sortBy": "sort rows by hoodie.bulkinsert.user.defined.partitioner.sort.columns in a bulk_insert, or by clustering "
    "(hoodie.clustering.plan.strategy.sort.columns)",
    "clusterBy": "use clustering: hoodie.clustering.inline=true and hoodie.clustering.plan.strategy.sort.columns",
}
LAYOUT_METHODS = tuple(_CURES)


def layout_method_error(method: str) -> ConfigError:
    """Return the error of one of `LAYOUT_METHODS`, with the options to use instead.

    Args:
        method: Its name.
    """
    return ConfigError(f"{method}(…) does not apply to Hudi tables: {layout_options(method)}")


def layout_options(method: str) -> str:
    """Return the options to use instead of one of `LAYOUT_METHODS`, or of its clause in SQL, for a message.

    Args:
        method: Its name.
    """
    return _CURES[method]
