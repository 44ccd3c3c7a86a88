"""Write options of Apache Hudi that pyhudi does not support: refused, or ignored with a warning.

Options are refused if ignoring them would change the data, or skip a requested validation. Options for work besides or
after a write, or for the arrangement of rows, are ignored with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import MergeMode
from pyhudi.config.option import Option, compile_regex
from pyhudi.errors import ConfigError, OptionWithoutEffectWarning, warn
from pyhudi.keygen.timestamp_settings import is_unknown_offset
from pyhudi.metrics.publish import check_metrics_options
from pyhudi.timeline.archive.archiver import commits_to_keep
from pyhudi.transaction.conflicts.clustering_updates import allows_updates
from pyhudi.transaction.post_commit.commit_callback import check_callback_options
from pyhudi.write.settings.precommit_validators import warn_of_unused_queries

_OFF = ("", "false")

_REFUSED: Mapping[str, tuple[tuple[str, ...], str]] = {
    options.PARQUET_TIMESTAMP_TYPE.key: (
        ("timestamp_micros",),
        "timestamps are written in microseconds, as Apache Hudi does in all operations except bulk_insert; leave "
        "the option out, and truncate the column with date_trunc('MILLISECOND', …) if needed",
    ),
    options.ALLOW_OPERATION_FIELD.key: (_OFF, "change operations of records are not stored; leave the option out"),
    options.WRITE_SCHEMA.key: (("",), "the columns of the DataFrame are written; select and cast them instead"),
    property_keys.TABLE_FORMAT: (
        ("", "native"),
        "only Apache Hudi's own table format is written; leave the option out",
    ),
    "hoodie.prewrite.validators": (
        ("",),
        "validators are Java classes, which pyhudi cannot run; validate the DataFrame before the write",
    ),
    "hoodie.index.class": (
        ("",),
        f"custom index classes are not supported; use one of the built-in indexes in {options.INDEX_TYPE.key}",
    ),
}
"""Key → values without effect, and the reason to refuse any other."""

_JAVA_CLASS = "it names a Java class, which pyhudi cannot run"
_SOURCES_STAY = "the source files of a bootstrapped table are never deleted; delete them when nothing reads them"
_WITHOUT_EFFECT: Mapping[str, tuple[tuple[str, ...], str]] = {
    options.CLUSTERING_ASYNC.key: (
        _OFF,
        "plan it with services.schedule_clustering() and run it with services.run_clustering()",
    ),
    "hoodie.prewrite.cleaner.policy": (
        ("", "none"),
        f"a write rolls back failed ones first, unless {options.FAILED_WRITES_POLICY.key} is another than EAGER, and "
        "cleans after its commit; call services.clean() before the write",
    ),
    "hoodie.clean.delete.bootstrap.base.file": (_OFF, _SOURCES_STAY),
    "hoodie.cleaner.delete.bootstrap.base.file": (_OFF, _SOURCES_STAY),
    "hoodie.bulkinsert.user.defined.partitioner.class": (
        ("",),
        f"partitioners are Java classes, which pyhudi cannot run; see {options.BULKINSERT_SORT_MODE.key} and "
        f"{options.BULKINSERT_SORT_COLUMNS.key}",
    ),
    options.CONFLICT_RESOLUTION_STRATEGY.key: (
        (options.CONFLICT_RESOLUTION_STRATEGY.default.lower(),),
        "writes of the same file group conflict, as with the default strategy",
    ),
    options.FAIL_ON_DUPLICATE_DATA_FILES.key: (
        _OFF,
        "files left behind by retried tasks are deleted before the commit",
    ),
    options.PAYLOAD_EVENT_TIME_FIELD.key: (("",), "commits contain no event times"),
    "hoodie.parquet.write.config.injector.class": (
        ("",),
        f"{_JAVA_CLASS}; use {options.PARQUET_BLOCK_SIZE.key}, {options.PARQUET_PAGE_SIZE.key} and similar options",
    ),
    "hoodie.metrics.configs.properties": (
        ("",),
        f"reporters are not read from files; set {options.METRICS_REPORTER.key}, and register functions for "
        "further ones with pyhudi.metrics.add_listener()",
    ),
    "hoodie.client.init.callback.classes": (("",), _JAVA_CLASS),
}

_TIME_ZONES = (
    options.TIMESTAMP_TIMEZONE.key,
    options.TIMESTAMP_INPUT_TIMEZONE.key,
    options.TIMESTAMP_OUTPUT_TIMEZONE.key,
)
_NO_OFFSET = "to Java it is no offset, and so UTC, in Apache Hudi, too; write offsets as GMT+05:30"

_HUDI_CLASS = "org.apache.hudi."
_CLASSES_WITHOUT_EFFECT = (
    "hoodie.avro.write.support.class",
    "hoodie.parquet.spark.row.write.support.class",
    "hoodie.fileid.prefix.provider.class",
    "hoodie.write.merge.handle.class",
    "hoodie.write.concat.handle.class",
    "hoodie.compact.merge.handle.class",
    "hoodie.record.size.estimator.class",
    "hoodie.storage.layout.partitioner.class",
    "hoodie.storage.class",
    "hoodie.io.factory.class",
    "hoodie.writestatus.class",
    "hoodie.compaction.plan.generator",
    "hoodie.bootstrap.full.input.provider",
)
"""Options that have no effect, and are warned of if they name a class that is not one of Apache Hudi."""
_REGEXES: tuple[tuple[Option[str | None], tuple[Option[bool], ...]], ...] = (
    (options.CLEAN_PARTITION_REGEX, (options.AUTO_CLEAN,)),
    (options.CLUSTERING_PARTITION_REGEX, (options.CLUSTERING_INLINE, options.CLUSTERING_SCHEDULE_INLINE)),
    (options.COMPACTION_PARTITION_REGEX, (options.COMPACT_INLINE, options.COMPACT_SCHEDULE_INLINE)),
)
"""Regular expressions of services, and the options with which these run after a write. Those of services that run
elsewhere, as in Apache Hudi, may be in the syntax of Java."""


def check_unsupported_options(opts: Options) -> None:
    """Check the options of a write for unsupported ones, and for those of later steps that contradict each other.

    Warns OptionWithoutEffectWarning for ignored options.

    Args:
        opts: The options.

    Raises:
        ConfigError: An option cannot be ignored, or contradicts another one. The message has an alternative.
        InvalidOptionError: A filter of partitions of a service after the write is not a regular expression.
    """
    allows_updates(opts)
    commits_to_keep(opts)
    check_metrics_options(opts)
    check_callback_options(opts)
    warn_of_unused_queries(opts)
    for option, services in _REGEXES:
        if opts.get_typed(options.TABLE_SERVICES_ENABLED) and any(map(opts.get_typed, services)):
            compile_regex(option, opts.get_typed(option) or "")
    for key, why in _options_with_effect(opts, _REFUSED):
        raise ConfigError(f"{key}={opts[key]}: {why}")
    for key, why in _options_with_effect(opts, _WITHOUT_EFFECT):
        warn(f"{key}={opts[key]} has no effect: {why}", OptionWithoutEffectWarning)
    for key in _TIME_ZONES:
        if is_unknown_offset(opts.get(key, "")):
            warn(f"{key}={opts[key]} has no effect: {_NO_OFFSET}", OptionWithoutEffectWarning)
    for key in _CLASSES_WITHOUT_EFFECT:
        name = opts.get(key, "").strip()
        if name and not name.startswith(_HUDI_CLASS):
            warn(f"{key}={name} has no effect: {_JAVA_CLASS}", OptionWithoutEffectWarning)
    _warn_of_merger_classes(opts)


def _warn_of_merger_classes(opts: Options) -> None:
    """Warn of mergers of the user that no option selects; for those of a strategy id, one in Python is required."""
    names = [name for name in opts.get_typed(options.MERGER_CLASSES) if not name.startswith(_HUDI_CLASS)]
    selected = opts.is_set(options.MERGE_STRATEGY_ID) or opts.get_typed(options.MERGE_MODE) is MergeMode.CUSTOM
    if names and not selected:
        warn(
            f"{opts.spelling(options.MERGER_CLASSES)}={','.join(names)} has no effect: {_JAVA_CLASS}; register a "
            f"merger in Python (pyhudi.register_merger), and create the table with {options.MERGE_MODE.key}=CUSTOM "
            f"and {options.MERGE_STRATEGY_ID.key}",
            OptionWithoutEffectWarning,
        )


def _options_with_effect(opts: Options, table: Mapping[str, tuple[tuple[str, ...], str]]) -> list[tuple[str, str]]:
    present = [(key, harmless, why) for key, (harmless, why) in table.items() if key in opts]
    return [(key, why) for key, harmless, why in present if opts[key].strip().lower() not in harmless]
