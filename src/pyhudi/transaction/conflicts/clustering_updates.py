"""Rules for writes that change file groups of a pending clustering."""

from __future__ import annotations

from pyhudi.config import Options, options
from pyhudi.errors import InvalidOptionError

_PACKAGE = "org.apache.hudi.client.clustering.update.strategy."
_REJECT, _ALLOW = "SparkRejectUpdateStrategy", "SparkAllowUpdateStrategy"
_DUPLICATE = "SparkConsistentBucketDuplicateUpdateStrategy"
"""Also writes to the new buckets of a pending resize, in Apache Hudi. Here such writes are refused, as by default."""


def allows_updates(opts: Options) -> bool:
    """Return True if such writes are allowed (`hoodie.clustering.updates.strategy`).

    If the clustering starts later, it is planned again with them, under a new instant; if it has started, it fails.

    Raises:
        InvalidOptionError: The strategy is unknown.
    """
    option = options.CLUSTERING_UPDATES_STRATEGY
    name = opts.get_typed(option).removeprefix(_PACKAGE)
    if name not in (_REJECT, _ALLOW, _DUPLICATE):
        raise InvalidOptionError(option.key, name, f"{_REJECT}, {_ALLOW}")
    return name == _ALLOW
