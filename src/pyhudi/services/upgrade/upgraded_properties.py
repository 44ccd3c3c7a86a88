"""Properties of a table (``hoodie.properties``) after an upgrade or a downgrade; measured on Apache Hudi 1.2.0.

Pure functions from properties to properties, for a table and its metadata table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.errors import InvalidOptionError, UnsupportedTableError
from pyhudi.table.config.key_generator_type import KeyGenType, class_name, parse_keygen
from pyhudi.table.config.merge_settings import (
    COMMIT_TIME_STRATEGY,
    DEFAULT_PAYLOAD,
    EVENT_TIME_STRATEGY,
    OVERWRITE_PAYLOAD,
    PAYLOAD_STRATEGY,
    PAYLOADS,
    PROPERTY_PREFIX,
)
from pyhudi.table.config.new_table_properties import BOOTSTRAP_INDEX_CLASS

VERSION = "hoodie.table.version"
VERSIONS = (5, 6, 8, 9)
"""Versions that tables have, oldest first; 7 is only an intermediate step of the upgrade to 8."""

_LAYOUT = "hoodie.timeline.layout.version"
_PAYLOAD = "hoodie.compaction.payload.class"
_LEGACY_PAYLOAD = "hoodie.table.legacy.payload.class"
_MODE = "hoodie.record.merge.mode"
_STRATEGY = "hoodie.record.merge.strategy.id"
_OLD_STRATEGY = "hoodie.compaction.record.merger.strategy"
_PARTIAL = "hoodie.table.partial.update.mode"
_PRECOMBINE = "hoodie.table.precombine.field"
_ORDERING = "hoodie.table.ordering.fields"
_KEYGEN_CLASS = "hoodie.table.keygenerator.class"
_KEYGEN_TYPE = "hoodie.table.keygenerator.type"
_PARTITIONS = "hoodie.table.partition.fields"
_ARCHIVE = "hoodie.archivelog.folder"
_INITIAL = "hoodie.table.initial.version"
_BOOTSTRAP_CLASS = "hoodie.bootstrap.index.class"
_BOOTSTRAP_TYPE = "hoodie.bootstrap.index.type"
_BOOTSTRAP_TYPE_OF_HFILES = "HFILE"

_PACKAGE = DEFAULT_PAYLOAD.rpartition(".")[0]
_EVENT_TIME_PAYLOAD = f"{_PACKAGE}.EventTimeAvroPayload"
_MYSQL_PAYLOAD = f"{_PACKAGE}.debezium.MySqlDebeziumAvroPayload"
_MODES = (OVERWRITE_PAYLOAD, DEFAULT_PAYLOAD, _EVENT_TIME_PAYLOAD)
"""Payload classes that version 8 represents as merge modes."""
_STRATEGIES = {"COMMIT_TIME_ORDERING": COMMIT_TIME_STRATEGY, "EVENT_TIME_ORDERING": EVENT_TIME_STRATEGY}
_NEWER_ONLY = {
    8: (_LEGACY_PAYLOAD, _PARTIAL),
    6: (
        _MODE,
        _STRATEGY,
        _INITIAL,
        _KEYGEN_TYPE,
        _BOOTSTRAP_TYPE,
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
    ),
}

Properties = dict[str, str]


def changed_properties(properties: Mapping[str, str], to: int, partition_spec: str | None = None) -> Properties:
    """Return the properties of a table in another version.

    Args:
        properties: Current properties.
        to: Target version, one of `VERSIONS`.
        partition_spec: Partition columns with their types, which tables of version 6 with a custom key generator do not
            store.

    Raises:
        UnsupportedTableError: The table cannot have that version; see also `pyhudi.services.upgrade.preconditions`.
    """
    changed = dict(properties)
    while (version := int(changed[VERSION])) != to:
        at = VERSIONS.index(version)
        after = VERSIONS[at + 1] if to > version else VERSIONS[at - 1]
        step = _STEPS.get((version, after))
        if step is None:
            raise UnsupportedTableError(f"tables of version {version} cannot be converted to version {after}")
        if step is _six_to_eight and partition_spec:
            changed[_PARTITIONS] = _typed(changed, partition_spec)
        changed = step(changed)
        changed[VERSION] = str(after)
    return changed


def _five_to_six(found: Properties) -> Properties:
    return found


def _six_to_eight(found: Properties) -> Properties:
    payload, ordering = found.get(_PAYLOAD), found.get(_PRECOMBINE) or found.get(_ORDERING)
    if payload and payload not in _MODES:
        mode, strategy = "CUSTOM", PAYLOAD_STRATEGY
    else:
        merge_on_read = found.get("hoodie.table.type") == "MERGE_ON_READ"
        by_event = ordering and (merge_on_read or not payload)
        mode = "EVENT_TIME_ORDERING" if by_event or payload == DEFAULT_PAYLOAD else "COMMIT_TIME_ORDERING"
        strategy = _STRATEGIES[mode]
        payload = DEFAULT_PAYLOAD if mode == "EVENT_TIME_ORDERING" else OVERWRITE_PAYLOAD
    found |= {
        _LAYOUT: "2",
        "hoodie.timeline.path": "timeline",
        _INITIAL: found[VERSION],
        _PAYLOAD: payload,
        _MODE: mode,
        _STRATEGY: strategy,
        _OLD_STRATEGY: strategy,
    }
    if found.get(_KEYGEN_CLASS):
        found[_KEYGEN_TYPE] = _keygen_type(found[_KEYGEN_CLASS])
    elif found.get(_KEYGEN_TYPE):
        found[_KEYGEN_CLASS] = class_name(parse_keygen(found[_KEYGEN_TYPE]))
    if found.get(_BOOTSTRAP_CLASS):
        found[_BOOTSTRAP_TYPE] = _BOOTSTRAP_TYPE_OF_HFILES
    return found


def _eight_to_nine(found: Properties) -> Properties:
    payload, mode = found.get(_PAYLOAD), found.get(_MODE)
    if mode != "CUSTOM":
        found.pop(_STRATEGY, None)
    ordering = found.get(_PRECOMBINE) or found.get(_ORDERING)
    known = PAYLOADS.get(payload or "")
    if payload and known is not None:
        if payload not in (OVERWRITE_PAYLOAD, DEFAULT_PAYLOAD):
            strategy = _STRATEGIES[known.mode]
            found |= {_MODE: str(known.mode), _STRATEGY: strategy, _OLD_STRATEGY: strategy}
        if known.partial is not None:
            found[_PARTIAL] = str(known.partial)
        found |= {f"{PROPERTY_PREFIX}{key}": value for key, value in known.properties.items()}
        found[_LEGACY_PAYLOAD] = payload
        del found[_PAYLOAD]
        ordering = ",".join(known.ordering) or ordering
    if ordering:
        found[_ORDERING] = ordering
        found.pop(_PRECOMBINE, None)
    return found


def _nine_to_eight(found: Properties) -> Properties:
    legacy = found.get(_LEGACY_PAYLOAD)
    known = PAYLOADS.get(legacy or "")
    if legacy and known is not None:
        found[_PAYLOAD] = legacy
        if legacy not in _MODES:
            found |= {_MODE: "CUSTOM", _STRATEGY: PAYLOAD_STRATEGY, _OLD_STRATEGY: PAYLOAD_STRATEGY}
        for key in known.properties:
            found.pop(f"{PROPERTY_PREFIX}{key}", None)
    ordering = found.get(_ORDERING)
    if legacy == _MYSQL_PAYLOAD and known is not None:
        ordering = known.sequence
    if ordering:
        found[_PRECOMBINE] = ordering
        found.pop(_ORDERING, None)
    strategy = _STRATEGIES.get(found.get(_MODE, ""))
    if strategy:
        found |= {_STRATEGY: strategy, _OLD_STRATEGY: strategy}
    return {key: value for key, value in found.items() if key not in _NEWER_ONLY[8]}


def _eight_to_six(found: Properties) -> Properties:
    if not found.get(_PAYLOAD):
        if found.get(_MODE) == "CUSTOM":
            raise UnsupportedTableError(f"merger {found.get(_STRATEGY)}: version 6 supports payload classes only")
        by_event = found.get(_MODE) == "EVENT_TIME_ORDERING"
        found[_PAYLOAD] = DEFAULT_PAYLOAD if by_event else OVERWRITE_PAYLOAD
    kind = found.get(_KEYGEN_TYPE)
    if kind and not found.get(_KEYGEN_CLASS):
        found[_KEYGEN_CLASS] = class_name(parse_keygen(kind))
    if found.get(_PARTITIONS):
        found[_PARTITIONS] = ",".join(part.partition(":")[0] for part in found[_PARTITIONS].split(","))
    if found.get(_BOOTSTRAP_TYPE) == _BOOTSTRAP_TYPE_OF_HFILES:
        found.setdefault(_BOOTSTRAP_CLASS, BOOTSTRAP_INDEX_CLASS)
    found |= {_LAYOUT: "1", _ARCHIVE: "archived"}
    return {key: value for key, value in found.items() if key not in _NEWER_ONLY[6]}


_STEPS: Mapping[tuple[int, int], Callable[[Properties], Properties]] = {
    (5, 6): _five_to_six,
    (6, 8): _six_to_eight,
    (8, 9): _eight_to_nine,
    (9, 8): _nine_to_eight,
    (8, 6): _eight_to_six,
}


def _keygen_type(java_class: str) -> str:
    try:
        kind = parse_keygen(java_class)
    except InvalidOptionError:
        return str(KeyGenType.USER_PROVIDED)
    twin = "_AVRO" if "Avro" in java_class.rpartition(".")[2] else ""
    return f"{kind}{twin}"


def _typed(properties: Mapping[str, str], partition_spec: str) -> str:
    """Return the partition columns with the types in the options, if the table's key generator has types."""
    stored = properties.get(_PARTITIONS, "")
    custom = _keygen_type(properties.get(_KEYGEN_CLASS) or "SIMPLE").startswith("CUSTOM")
    names = [part.partition(":")[0].strip() for part in partition_spec.split(",")]
    return partition_spec if custom and ":" not in stored and names == stored.split(",") else stored
