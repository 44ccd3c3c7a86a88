"""Options of a write that Apache Hudi acts on and this release does not: refused, or said to have no effect.

Refused is what would leave other data, or let a write pass that was to be checked. What happens beside or after a
write, or only arranges rows otherwise, is warned of.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning, warn
from pyhudi.metrics.publish import check_metrics_options
from pyhudi.transaction.conflicts.clustering_updates import allows_updates

_OFF = ("", "false")

_REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    options.PARQUET_TIMESTAMP_TYPE.key: (
        ("timestamp_micros",),
        "timestamps are written in microseconds, as Apache Hudi does in all operations but bulk_insert; leave the "
        "option out, and cut the column with date_trunc('MILLISECOND', …) if its digits are not wanted",
    ),
    options.ALLOW_OPERATION_FIELD.key: (_OFF, "the change operation of records is not kept; leave the option out"),
    options.WRITE_SCHEMA.key: (("",), "the columns of the DataFrame are what is written; select and cast them instead"),
    "hoodie.precommit.validators": (
        ("",),
        "validators are Java classes, which cannot run here; check the DataFrame before it is written",
    ),
    "hoodie.prewrite.validators": (
        ("",),
        "validators are Java classes, which cannot run here; check the DataFrame before it is written",
    ),
    "hoodie.index.class": (
        ("",),
        f"an index class of your own cannot run here; name one of the known indexes in {options.INDEX_TYPE.key}",
    ),
    options.CONCURRENCY_MODE.key: (
        ("single_writer", "optimistic_concurrency_control"),
        "it needs merge-on-read tables with a bucket index, which are not written here; use "
        "OPTIMISTIC_CONCURRENCY_CONTROL",
    ),
}
"""Key → values that change nothing, and what to say of any other."""

_NOT_RUN = "it is not run after a write; run it with Apache Hudi, or leave the option out"
_NOT_SYNCED = "no catalog is told of the write; run the sync tool after it"
_SOURCES_STAY = "the files that a table was bootstrapped of are never deleted; delete them when nothing reads them"
_WITHOUT_EFFECT: Mapping[str, tuple[tuple[str, ...], str]] = {
    "hoodie.datasource.meta.sync.enable": (_OFF, _NOT_SYNCED),
    "hoodie.datasource.hive_sync.enable": (_OFF, _NOT_SYNCED),
    options.CLUSTERING_ASYNC.key: (
        _OFF,
        "plan it by services.schedule_clustering() and run it by services.run_clustering()",
    ),
    "hoodie.clean.delete.bootstrap.base.file": (_OFF, _SOURCES_STAY),
    "hoodie.cleaner.delete.bootstrap.base.file": (_OFF, _SOURCES_STAY),
    "hoodie.write.commit.callback.on": (_OFF, "nobody is called back; the result of the write says what it did"),
    "hoodie.bulkinsert.user.defined.partitioner.class": (
        ("",),
        f"partitioners are Java classes, which cannot run here; see {options.BULKINSERT_SORT_MODE.key} and "
        f"{options.BULKINSERT_SORT_COLUMNS.key}",
    ),
    options.NUM_RETRIES_ON_CONFLICT.key: (
        ("0",),
        "a write that lost to another one raises ConflictError; try it again",
    ),
    options.CONFLICT_RESOLUTION_STRATEGY.key: (
        (options.CONFLICT_RESOLUTION_STRATEGY.default.lower(),),
        "writes of the same file group are in each other's way, as with the default strategy",
    ),
    options.FAIL_ON_DUPLICATE_DATA_FILES.key: (_OFF, "leftovers of repeated tasks are deleted before the commit"),
    options.PAYLOAD_EVENT_TIME_FIELD.key: (("",), "commits hold no event times"),
}


def check_unsupported_options(opts: Options) -> None:
    """Check the options of a write for unsupported ones.

    Warns OptionWithoutEffectWarning for what will not happen.

    Raises:
        ConfigError: the write could not be done as the options want it; says what to do instead.
    """
    allows_updates(opts)
    check_metrics_options(opts)
    for key, why in _found(opts, _REFUSED):
        raise ConfigError(f"{key}={opts[key]}: {why}")
    for key, why in _found(opts, _WITHOUT_EFFECT):
        warn(f"{key}={opts[key]} has no effect: {why}", OptionWithoutEffectWarning)


def _found(opts: Options, table: Mapping[str, tuple[tuple[str, ...], str]]) -> list[tuple[str, str]]:
    given = [(key, harmless, why) for key, (harmless, why) in table.items() if key in opts]
    return [(key, why) for key, harmless, why in given if opts[key].strip().lower() not in harmless]
