"""Properties of a table (``hoodie.properties``) after an upgrade or a downgrade; measured on Apache Hudi 1.2.0.

Pure functions from properties to properties, for a table and its metadata table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyhudi.config import Options, options
from pyhudi.config import property_keys as keys
from pyhudi.config.property_keys import RECORD_MERGE_PROPERTY_PREFIX
from pyhudi.errors import InvalidOptionError, UnsupportedTableError
from pyhudi.table.config.key_generator_type import KeyGenType, class_name, parse_keygen
from pyhudi.table.config.merge_settings import COMMIT_TIME_STRATEGY, EVENT_TIME_STRATEGY, PAYLOAD_STRATEGY
from pyhudi.table.config.new_table_properties import BOOTSTRAP_INDEX_CLASS
from pyhudi.table.config.payload_classes import DEFAULT_PAYLOAD, OVERWRITE_PAYLOAD, PAYLOADS

VERSIONS = (5, 6, 8, 9)
"""Versions that tables have, oldest first; 7 is only an intermediate step of the upgrade to 8."""

_BOOTSTRAP_TYPE_OF_HFILES = "HFILE"

_PACKAGE = DEFAULT_PAYLOAD.rpartition(".")[0]
_EVENT_TIME_PAYLOAD = f"{_PACKAGE}.EventTimeAvroPayload"
_MYSQL_PAYLOAD = f"{_PACKAGE}.debezium.MySqlDebeziumAvroPayload"
_MODES = (OVERWRITE_PAYLOAD, DEFAULT_PAYLOAD, _EVENT_TIME_PAYLOAD)
"""Payload classes that version 8 represents as merge modes."""
_STRATEGIES = {"COMMIT_TIME_ORDERING": COMMIT_TIME_STRATEGY, "EVENT_TIME_ORDERING": EVENT_TIME_STRATEGY}
_NEWER_ONLY = {
    8: (keys.LEGACY_PAYLOAD_CLASS, keys.PARTIAL_UPDATE_MODE),
    6: (
        keys.RECORD_MERGE_MODE,
        keys.RECORD_MERGE_STRATEGY_ID,
        keys.INITIAL_VERSION,
        keys.KEY_GENERATOR_TYPE,
        keys.BOOTSTRAP_INDEX_TYPE,
        keys.TIMELINE_PATH,
        keys.TIMELINE_HISTORY_PATH,
    ),
}

Properties = dict[str, str]


def changed_properties(properties: Mapping[str, str], to: int, opts: Options) -> Properties:
    """Return the properties of a table in another version.

    Args:
        properties: Current properties.
        to: Target version, one of `VERSIONS`.
        opts: Options of the table's writes, which say what a table of version 6 need not store: the types of partition
            columns if it has a custom key generator, and the payload class if it is copy-on-write.

    Raises:
        UnsupportedTableError: The table cannot have that version; see also `pyhudi.services.upgrade.preconditions`.
    """
    changed = dict(properties)
    while (version := int(changed[keys.VERSION])) != to:
        at = VERSIONS.index(version)
        after = VERSIONS[at + 1] if to > version else VERSIONS[at - 1]
        step = _STEPS.get((version, after))
        if step is None:
            raise UnsupportedTableError(f"tables of version {version} cannot be converted to version {after}")
        changed = step(_completed(changed, opts) if step is _six_to_eight else changed)
        changed[keys.VERSION] = str(after)
    return changed


def _five_to_six(properties: Properties) -> Properties:
    return properties


def _six_to_eight(properties: Properties) -> Properties:
    payload, ordering = (
        properties.get(keys.PAYLOAD_CLASS),
        properties.get(keys.PRECOMBINE_FIELD) or properties.get(keys.ORDERING_FIELDS),
    )
    if payload and payload not in _MODES:
        mode, strategy = "CUSTOM", PAYLOAD_STRATEGY
    else:
        merge_on_read = properties.get(keys.TYPE) == "MERGE_ON_READ"
        by_event = ordering and (merge_on_read or not payload)
        by_event = by_event or payload in (DEFAULT_PAYLOAD, _EVENT_TIME_PAYLOAD)
        mode = "EVENT_TIME_ORDERING" if by_event else "COMMIT_TIME_ORDERING"
        strategy = _STRATEGIES[mode]
        payload = DEFAULT_PAYLOAD if mode == "EVENT_TIME_ORDERING" else OVERWRITE_PAYLOAD
    properties |= {
        keys.TIMELINE_LAYOUT_VERSION: "2",
        keys.TIMELINE_PATH: "timeline",
        keys.INITIAL_VERSION: properties[keys.VERSION],
        keys.PAYLOAD_CLASS: payload,
        keys.RECORD_MERGE_MODE: mode,
        keys.RECORD_MERGE_STRATEGY_ID: strategy,
        keys.RECORD_MERGER_STRATEGY: strategy,
    }
    if properties.get(keys.KEY_GENERATOR_CLASS):
        properties[keys.KEY_GENERATOR_TYPE] = _keygen_type(properties[keys.KEY_GENERATOR_CLASS])
    elif properties.get(keys.KEY_GENERATOR_TYPE):
        properties[keys.KEY_GENERATOR_CLASS] = class_name(parse_keygen(properties[keys.KEY_GENERATOR_TYPE]))
    if properties.get(keys.BOOTSTRAP_INDEX_CLASS):
        properties[keys.BOOTSTRAP_INDEX_TYPE] = _BOOTSTRAP_TYPE_OF_HFILES
    return properties


def _eight_to_nine(properties: Properties) -> Properties:
    payload, mode = properties.get(keys.PAYLOAD_CLASS), properties.get(keys.RECORD_MERGE_MODE)
    if mode != "CUSTOM":
        properties.pop(keys.RECORD_MERGE_STRATEGY_ID, None)
    ordering = properties.get(keys.PRECOMBINE_FIELD) or properties.get(keys.ORDERING_FIELDS)
    translation = PAYLOADS.get(payload or "")
    if payload and translation is not None:
        if payload not in (OVERWRITE_PAYLOAD, DEFAULT_PAYLOAD):
            strategy = _STRATEGIES[translation.mode]
            properties |= {keys.RECORD_MERGE_MODE: str(translation.mode), keys.RECORD_MERGER_STRATEGY: strategy}
            if mode == "CUSTOM":
                properties[keys.RECORD_MERGE_STRATEGY_ID] = strategy
        if translation.partial is not None:
            properties[keys.PARTIAL_UPDATE_MODE] = str(translation.partial)
        properties |= {f"{RECORD_MERGE_PROPERTY_PREFIX}{key}": value for key, value in translation.properties.items()}
        properties[keys.LEGACY_PAYLOAD_CLASS] = payload
        del properties[keys.PAYLOAD_CLASS]
        ordering = ",".join(translation.ordering) or ordering
    if ordering:
        properties[keys.ORDERING_FIELDS] = ordering
        properties.pop(keys.PRECOMBINE_FIELD, None)
    return properties


def _nine_to_eight(properties: Properties) -> Properties:
    legacy = properties.get(keys.LEGACY_PAYLOAD_CLASS)
    translation = PAYLOADS.get(legacy or "")
    if legacy and translation is not None:
        properties[keys.PAYLOAD_CLASS] = legacy
        if legacy not in _MODES:
            properties |= {
                keys.RECORD_MERGE_MODE: "CUSTOM",
                keys.RECORD_MERGE_STRATEGY_ID: PAYLOAD_STRATEGY,
                keys.RECORD_MERGER_STRATEGY: PAYLOAD_STRATEGY,
            }
        for key in translation.properties:
            properties.pop(f"{RECORD_MERGE_PROPERTY_PREFIX}{key}", None)
    ordering = properties.get(keys.ORDERING_FIELDS)
    if legacy == _MYSQL_PAYLOAD and translation is not None:
        ordering = translation.sequence
    if ordering:
        properties[keys.PRECOMBINE_FIELD] = ordering
        properties.pop(keys.ORDERING_FIELDS, None)
    strategy = _STRATEGIES.get(properties.get(keys.RECORD_MERGE_MODE, ""))
    if strategy:
        properties |= {keys.RECORD_MERGE_STRATEGY_ID: strategy, keys.RECORD_MERGER_STRATEGY: strategy}
    if properties.get(keys.INITIAL_VERSION) == properties[keys.VERSION]:
        properties[keys.INITIAL_VERSION] = "8"  # 1.0.2 parses it in writes that name a payload class.
    return {key: value for key, value in properties.items() if key not in _NEWER_ONLY[8]}


def _eight_to_six(properties: Properties) -> Properties:
    if not properties.get(keys.PAYLOAD_CLASS):
        if properties.get(keys.RECORD_MERGE_MODE) == "CUSTOM":
            raise UnsupportedTableError(
                f"merger {properties.get(keys.RECORD_MERGE_STRATEGY_ID)}: version 6 supports payload classes only"
            )
        by_event = properties.get(keys.RECORD_MERGE_MODE) == "EVENT_TIME_ORDERING"
        properties[keys.PAYLOAD_CLASS] = DEFAULT_PAYLOAD if by_event else OVERWRITE_PAYLOAD
    kind = properties.get(keys.KEY_GENERATOR_TYPE)
    if kind and not properties.get(keys.KEY_GENERATOR_CLASS):
        properties[keys.KEY_GENERATOR_CLASS] = class_name(parse_keygen(kind))
    if properties.get(keys.PARTITION_FIELDS):
        properties[keys.PARTITION_FIELDS] = ",".join(
            part.partition(":")[0] for part in properties[keys.PARTITION_FIELDS].split(",")
        )
    if properties.get(keys.BOOTSTRAP_INDEX_TYPE) == _BOOTSTRAP_TYPE_OF_HFILES:
        properties.setdefault(keys.BOOTSTRAP_INDEX_CLASS, BOOTSTRAP_INDEX_CLASS)
    properties |= {keys.TIMELINE_LAYOUT_VERSION: "1", keys.ARCHIVELOG_FOLDER: "archived"}
    return {key: value for key, value in properties.items() if key not in _NEWER_ONLY[6]}


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
    twin = kind is not KeyGenType.USER_PROVIDED and "Avro" in java_class.rpartition(".")[2]
    return f"{kind}_AVRO" if twin else str(kind)


def _completed(properties: Properties, opts: Options) -> Properties:
    """Return properties of version 6 with what only the options of writes say. The metadata table stores all."""
    if partition_spec := opts.text(options.PARTITIONPATH_FIELD):
        properties[keys.PARTITION_FIELDS] = _typed(properties, partition_spec)
    payload = opts.get_typed(options.PAYLOAD_CLASS)
    if payload and payload not in _MODES:  # for the others, the ordering columns decide, as in Apache Hudi
        properties.setdefault(keys.PAYLOAD_CLASS, payload)
    return properties


def _typed(properties: Mapping[str, str], partition_spec: str) -> str:
    """Return the partition columns with the types in the options, if the table's key generator has types."""
    stored = properties.get(keys.PARTITION_FIELDS, "")
    custom = _keygen_type(properties.get(keys.KEY_GENERATOR_CLASS) or "SIMPLE").startswith("CUSTOM")
    names = [part.partition(":")[0].strip() for part in partition_spec.split(",")]
    return partition_spec if custom and ":" not in stored and names == stored.split(",") else stored
