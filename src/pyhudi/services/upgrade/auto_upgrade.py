"""Automatic upgrades by writers, according to the options of a write (ADR 19)."""

from __future__ import annotations

import logging

from pyhudi.config import Options, options
from pyhudi.table.config.table_config import TableConfig

_log = logging.getLogger(__name__)


def required_version(config: TableConfig, opts: Options) -> int | None:
    """Return the version to which a write must upgrade its table; None if it keeps its version.

    A write upgrades with a later version in `hoodie.write.table.version`, or with `hoodie.write.auto.upgrade=true`,
    which means the latest one. With `hoodie.write.auto.upgrade=false` the table keeps its version regardless of the
    other option, as in Apache Hudi.
    """
    named, automatic = opts.is_set(options.WRITE_TABLE_VERSION), opts.get_typed(options.AUTO_UPGRADE)
    if not named and not (opts.is_set(options.AUTO_UPGRADE) and automatic):
        return None
    version = opts.get_typed(options.WRITE_TABLE_VERSION)
    if version <= config.version:
        return None
    if not automatic:
        _log.warning(
            "%s=%d is ignored, because %s=false: table %r keeps version %d",
            options.WRITE_TABLE_VERSION.key,
            version,
            options.AUTO_UPGRADE.key,
            config.name,
            config.version,
        )
        return None
    return version
