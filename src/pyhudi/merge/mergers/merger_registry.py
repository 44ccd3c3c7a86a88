"""Registry of mergers. A table refers to a merger by its strategy id, which is looked up here; nothing is imported."""

from __future__ import annotations

from pyhudi.config.extension_instances import check_instance, class_hint
from pyhudi.errors import ConfigError, UnsupportedTableError
from pyhudi.merge.mergers.payload_mergers import PAYLOAD_MERGERS
from pyhudi.merge.mergers.record_merger import RecordMerger
from pyhudi.table.config.merge_settings import BUILT_IN_STRATEGIES, MergeSettings
from pyhudi.table.config.payload_classes import PAYLOADS

_MERGERS: dict[str, RecordMerger] = {}


def register_merger(merger: RecordMerger) -> RecordMerger:
    """Register a merger, in place of an earlier one with the same strategy id.

    Tables of the mode CUSTOM find it by ``hoodie.record.merge.strategy.id`` (write option
    ``hoodie.write.record.merge.strategy.id``). It is sent to Spark's executors with the tasks that need it, pickled as
    Spark pickles functions: a class of a module must be importable there, one of a notebook or script need not.

    Args:
        merger: Merger to register.

    Returns:
        The merger.

    Raises:
        ConfigError: It is no instance of a `RecordMerger`, or its strategy id is empty or one of Apache Hudi's own.
    """
    check_instance(merger, RecordMerger, "register_merger")
    strategy = merger.strategy_id.strip().lower() if isinstance(merger.strategy_id, str) else ""
    if not strategy:
        raise ConfigError(
            f"{type(merger).__name__}.strategy_id is {merger.strategy_id!r}; it must be a non-empty text, preferably "
            "a UUID"
        )
    if strategy in BUILT_IN_STRATEGIES:
        raise ConfigError(
            f"{type(merger).__name__}.strategy_id is {strategy}, which Apache Hudi uses for "
            f"{BUILT_IN_STRATEGIES[strategy]}; use another id, for instance from str(uuid.uuid4())"
        )
    _MERGERS[strategy] = merger
    return merger


def unregister_merger(strategy_id: str) -> None:
    """Remove a merger from the registry, if it is registered.

    Args:
        strategy_id: Strategy id of the merger, in upper or lower case.
    """
    _MERGERS.pop(strategy_id.strip().lower(), None)


def registered(settings: MergeSettings) -> RecordMerger:
    """Return the merger of a table whose mode is CUSTOM.

    Raises:
        UnsupportedTableError: None is registered. The message explains how to register one.
    """
    if settings.payload_class:
        name = settings.payload_class
        key = name.lower()
        what = f"the payload class {name} (Java code, which pyhudi cannot run{class_hint(name, PAYLOADS)})"
    else:
        name = settings.strategy_id
        key = name.lower()
        what = f"the merger with the strategy id {name}"
    merger = _MERGERS.get(key) or PAYLOAD_MERGERS.get(key)
    if merger is None:
        raise UnsupportedTableError(
            f"the table merges records with {what}, but no merger with that id is registered. Implement it as a "
            f"subclass of pyhudi.RecordMerger whose strategy_id is {name!r} and call pyhudi.register_merger(…) "
            "first; scan(read_optimized=True) reads the rows as of the last compaction without it"
        )
    return merger
