"""Merge settings of a table, from options and properties in three generations of spellings.

Version 6 has a payload class, version 8 a mode with a strategy id and a payload class, version 9 a mode alone
(``hoodie.record.merge.mode``) with further settings of known payload classes as separate properties. Classes are names
only and never loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import MergeMode, PartialUpdateMode, TableType
from pyhudi.config.property_keys import RECORD_MERGE_PROPERTY_PREFIX
from pyhudi.errors import ConfigError, UnsupportedTableError

COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"

BUILT_IN_STRATEGIES: Mapping[str, str] = {
    COMMIT_TIME_STRATEGY: "COMMIT_TIME_ORDERING",
    EVENT_TIME_STRATEGY: "EVENT_TIME_ORDERING",
    PAYLOAD_STRATEGY: "payload classes",
}
"""Strategy ids with a predefined meaning in Apache Hudi."""

_PACKAGE = "org.apache.hudi.common.model."
OVERWRITE_PAYLOAD = _PACKAGE + "OverwriteWithLatestAvroPayload"
DEFAULT_PAYLOAD = _PACKAGE + "DefaultHoodieRecordPayload"
_PARTIAL_UPDATE_PAYLOAD = _PACKAGE + "PartialUpdateAvroPayload"
_DEBEZIUM_PAYLOADS = _PACKAGE + "debezium."
_POSTGRES_PAYLOAD = _DEBEZIUM_PAYLOADS + "PostgresDebeziumAvroPayload"

DELETE_FIELD = options.PAYLOAD_DELETE_FIELD.key
DELETE_MARKER = options.PAYLOAD_DELETE_MARKER.key
UNAVAILABLE_VALUE = options.PAYLOAD_UNAVAILABLE_VALUE.key

_STRATEGY_OF = {
    MergeMode.COMMIT_TIME_ORDERING: COMMIT_TIME_STRATEGY,
    MergeMode.EVENT_TIME_ORDERING: EVENT_TIME_STRATEGY,
}
_MODE_OF = {strategy: mode for mode, strategy in _STRATEGY_OF.items()}


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """Merge settings of a table, in the terms of version 9.

    ``payload_class`` is set for the mode CUSTOM by payload, ``legacy_payload`` if a known class was translated.
    ``properties`` are merge properties without their prefix: delete field and marker, the unavailable value.
    ``dedupe_mode`` and ``dedupe_partial_mode`` apply between records of one batch. They differ from ``mode`` and
    ``partial_update_mode`` only below version 9, where payload classes have a separate method for this: most compare
    ordering values and fill nothing. ``deletes_win``: a delete applies regardless of its ordering value, as in some
    payload classes below version 9. ``sequences``: ordering values are dotted numbers such as ``000012.345``, which are
    compared number by number.
    """

    mode: MergeMode
    strategy_id: str
    ordering_fields: tuple[str, ...] = ()
    partial_update_mode: PartialUpdateMode | None = None
    payload_class: str | None = None
    legacy_payload: str | None = None
    dedupe_mode: MergeMode = MergeMode.COMMIT_TIME_ORDERING
    properties: Mapping[str, str] = field(default_factory=dict)
    dedupe_partial_mode: PartialUpdateMode | None = None
    deletes_win: bool = False
    sequences: bool = False

    @property
    def computes_values(self) -> bool:
        """True if merging may compute values that no version of a record has."""
        return self.mode is MergeMode.CUSTOM

    @property
    def combines_versions(self) -> bool:
        """True if a merged row may combine values of several versions of a record, or computes values from them."""
        return self.computes_values or self.partial_update_mode is not None

    @property
    def deciding_columns(self) -> dict[str, tuple[str, ...]]:
        """Columns that decide between versions of a record, by their role. Without them older versions would win, or
        deleted records come back."""
        marker = self.properties.get(DELETE_FIELD)
        return {"ordering": self.ordering_fields, "delete marker": (marker,) if marker else ()}


@dataclass(frozen=True, slots=True)
class _Translation:
    """Meaning of a payload class. ``sequence``: column of sequences (`MergeSettings`) by which the class orders below
    version 9, instead of ``ordering``."""

    mode: MergeMode
    partial: PartialUpdateMode | None = None
    ordering: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    sequence: str | None = None


_DEBEZIUM_DELETE = {DELETE_FIELD: "_change_operation_type", DELETE_MARKER: "d"}
_COMMIT, _EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING

PAYLOADS: Mapping[str, _Translation] = {
    OVERWRITE_PAYLOAD: _Translation(_COMMIT),
    DEFAULT_PAYLOAD: _Translation(_EVENT),
    _PACKAGE + "EventTimeAvroPayload": _Translation(_EVENT),
    _PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload": _Translation(_COMMIT, PartialUpdateMode.IGNORE_DEFAULTS),
    _PARTIAL_UPDATE_PAYLOAD: _Translation(_EVENT, PartialUpdateMode.IGNORE_DEFAULTS),
    _PACKAGE + "AWSDmsAvroPayload": _Translation(_COMMIT, properties={DELETE_FIELD: "Op", DELETE_MARKER: "D"}),
    _POSTGRES_PAYLOAD: _Translation(
        _EVENT,
        PartialUpdateMode.FILL_UNAVAILABLE,
        ("_event_lsn",),
        {**_DEBEZIUM_DELETE, UNAVAILABLE_VALUE: options.PAYLOAD_UNAVAILABLE_VALUE.default},
    ),
    _DEBEZIUM_PAYLOADS + "MySqlDebeziumAvroPayload": _Translation(
        _EVENT, None, ("_event_bin_file", "_event_pos"), _DEBEZIUM_DELETE, "_event_seq"
    ),
}
"""Payload classes of older releases that are equivalent to a merge mode with some properties."""


def from_payload(payload: str, ordering: tuple[str, ...], more: Mapping[str, str] | None = None) -> MergeSettings:
    """Return the settings of a payload class; an unknown class is CUSTOM."""
    translation = PAYLOADS.get(payload)
    if translation is None:
        return MergeSettings(
            MergeMode.CUSTOM, PAYLOAD_STRATEGY, ordering, None, payload, None, MergeMode.CUSTOM, dict(more or {})
        )
    return MergeSettings(
        translation.mode,
        _STRATEGY_OF[translation.mode],
        translation.ordering or ordering,
        translation.partial,
        None,
        payload,
        translation.mode,
        {**(more or {}), **translation.properties},
        translation.partial,
    )


def _as_payload(settings: MergeSettings) -> MergeSettings:
    """Return the settings of a known payload class below version 9, where it still acts as a class.

    Measured with Apache Hudi 1.2.0, which reads tables of 0.15.0 and 1.0.2 this way; those two differ from it and from
    each other in corner cases of deletes (``docs/format/core.md``, 7.7).
    """
    payload = settings.legacy_payload
    if payload is None:
        return settings
    partial = payload == _PARTIAL_UPDATE_PAYLOAD
    sequence = PAYLOADS[payload].sequence
    ordering = (sequence,) if sequence else settings.ordering_fields
    return replace(
        settings,
        ordering_fields=ordering,
        sequences=sequence is not None,
        dedupe_mode=_EVENT if ordering else _COMMIT,
        dedupe_partial_mode=settings.partial_update_mode if partial else None,
        deletes_win=partial or payload.startswith(_DEBEZIUM_PAYLOADS),
    )


def for_new_table(opts: Options) -> MergeSettings:
    """Return the merge settings of a new table from its options.

    A payload class takes precedence, then mode and strategy, then the ordering columns. Raises ConfigError if mode,
    strategy and payload class contradict each other, or merge properties are set that the table would not have.
    """
    settings = _new_settings(opts)
    _check_properties(settings, opts)
    return settings


def _new_settings(opts: Options) -> MergeSettings:
    ordering = opts.get_typed(options.ORDERING_FIELDS)
    mode = opts.get_typed(options.MERGE_MODE)
    strategy = opts.get_typed(options.MERGE_STRATEGY_ID)
    payload = opts.get_typed(options.PAYLOAD_CLASS)
    deletes = {key: opts[key] for key in (DELETE_FIELD, DELETE_MARKER) if key in opts}
    if len(deletes) == 1:  # One without the other has no effect.
        deletes = {}
    if payload:
        settings = from_payload(payload, ordering, deletes)
        if opts.get_typed(options.WRITE_TABLE_VERSION) == 8 and mode not in (None, settings.mode):
            raise ConfigError(
                f"{opts.spelling(options.MERGE_MODE)}={mode} contradicts the payload class {payload}, which means "
                f"{settings.mode}; set one of the two"
            )
        return settings
    implied = _MODE_OF.get(strategy, MergeMode.CUSTOM) if strategy else None
    if mode is not None and implied is not None and mode is not implied:
        raise ConfigError(
            f"{opts.spelling(options.MERGE_MODE)}={mode} contradicts "
            f"{opts.spelling(options.MERGE_STRATEGY_ID)}={strategy}, which means {implied}; set one of the two"
        )
    mode = mode or implied or (_EVENT if ordering else _COMMIT)
    if mode is MergeMode.CUSTOM and (not strategy or strategy == PAYLOAD_STRATEGY):
        raise ConfigError(
            f"the merge mode CUSTOM requires the strategy id of a merger in {options.MERGE_STRATEGY_ID.key}, or a "
            f"payload class in {options.PAYLOAD_CLASS.key}"
        )
    strategy_id = strategy if mode is MergeMode.CUSTOM and strategy else _STRATEGY_OF[mode]
    return MergeSettings(mode, strategy_id, ordering, dedupe_mode=mode, properties=deletes)


def _check_properties(settings: MergeSettings, opts: Options) -> None:
    """Refuse properties of partial updates and mergers that a new table does not get: Apache Hudi takes them from the
    payload class alone, and ignores these options."""
    partial = opts.get_typed(options.PARTIAL_UPDATE_MODE)
    if partial is not None and partial is not settings.partial_update_mode:
        classes = [f"{payload} ({its.mode})" for payload, its in PAYLOADS.items() if its.partial is partial]
        raise ConfigError(
            f"{opts.spelling(options.PARTIAL_UPDATE_MODE)}={partial}: a new table gets it from the payload class; set "
            f"{options.PAYLOAD_CLASS.key} to {' or '.join(classes)}"
        )
    unavailable = opts.get_typed(options.PAYLOAD_UNAVAILABLE_VALUE)
    fixed = settings.properties.get(UNAVAILABLE_VALUE, options.PAYLOAD_UNAVAILABLE_VALUE.default)
    if unavailable != fixed:
        raise ConfigError(
            f"{UNAVAILABLE_VALUE}={unavailable}: a new table gets it from the payload class "
            f"{_POSTGRES_PAYLOAD}, and it is {fixed} there; replace the value in the rows"
        )
    for key, value in opts.with_prefix(RECORD_MERGE_PROPERTY_PREFIX).items():
        name = key.removeprefix(RECORD_MERGE_PROPERTY_PREFIX)
        if settings.properties.get(name) != value:
            marks = name in (DELETE_FIELD, DELETE_MARKER)
            cure = f"set {DELETE_FIELD} and {DELETE_MARKER}" if marks else "leave it out"
            raise ConfigError(
                f"{key}={value}: a new table gets merge properties from {options.PAYLOAD_CLASS.key}, and would not "
                f"have this one; {cure}"
            )


def table_properties(settings: MergeSettings, opts: Options) -> dict[str, str]:
    """Return the properties with which a new table stores *settings*, which come from *opts*."""
    version = opts.get_typed(options.WRITE_TABLE_VERSION)
    ordering = opts.text(options.ORDERING_FIELDS) or ""
    if version < 8:
        return _version_6(settings, opts, ordering)
    properties: dict[str, str] = {
        f"{RECORD_MERGE_PROPERTY_PREFIX}{key}": value for key, value in settings.properties.items()
    }
    return _version_8(settings, properties, ordering) if version == 8 else _version_9(settings, properties, ordering)


def _version_8(settings: MergeSettings, merge_properties: dict[str, str], ordering: str) -> dict[str, str]:
    """Return the properties of a table of version 8, given the merge properties and the ordering columns."""
    mode, strategy, properties = settings.mode, settings.strategy_id, merge_properties
    # Version 8 identifies translated payloads only by their class, unless it is the class of the mode: 1.0.2 cannot
    # read logs if class and strategy id are both set and differ.
    payload = settings.payload_class or settings.legacy_payload
    translation = PAYLOADS.get(settings.legacy_payload or "")
    if translation is not None and payload not in (OVERWRITE_PAYLOAD, DEFAULT_PAYLOAD):
        mode, strategy = MergeMode.CUSTOM, PAYLOAD_STRATEGY
        properties = {
            key: value
            for key, value in properties.items()
            if key.removeprefix(RECORD_MERGE_PROPERTY_PREFIX) not in translation.properties
        }
    by_mode = OVERWRITE_PAYLOAD if mode is _COMMIT or (mode is MergeMode.CUSTOM and not ordering) else DEFAULT_PAYLOAD
    properties = {
        **properties,
        property_keys.PAYLOAD_CLASS: payload or by_mode,
        property_keys.RECORD_MERGE_STRATEGY_ID: strategy,
        property_keys.RECORD_MERGE_MODE: str(mode),
    }
    return {**properties, property_keys.PRECOMBINE_FIELD: ordering} if ordering else properties


def _version_9(settings: MergeSettings, merge_properties: dict[str, str], ordering: str) -> dict[str, str]:
    """Return the properties of a table of version 9, given the same."""
    if settings.legacy_payload:
        ordering = ",".join(PAYLOADS[settings.legacy_payload].ordering) or ordering
    by_mode = {
        property_keys.RECORD_MERGE_MODE: str(settings.mode),
        property_keys.RECORD_MERGE_STRATEGY_ID: settings.strategy_id if settings.mode is MergeMode.CUSTOM else "",
        property_keys.PAYLOAD_CLASS: settings.payload_class,
        property_keys.LEGACY_PAYLOAD_CLASS: settings.legacy_payload,
        property_keys.PARTIAL_UPDATE_MODE: settings.partial_update_mode and str(settings.partial_update_mode),
        property_keys.ORDERING_FIELDS: ordering,
    }
    return {**merge_properties, **{key: value for key, value in by_mode.items() if value}}


def _version_6(settings: MergeSettings, opts: Options, ordering: str) -> dict[str, str]:
    """Return the properties of a table of version 6."""
    properties = {property_keys.PRECOMBINE_FIELD: ordering} if ordering else {}
    payload = settings.payload_class or settings.legacy_payload
    # Version 6 has no modes. An explicit mode becomes the payload class with the same meaning, whereas an ordering
    # column alone implies event time only from version 8 on.
    named = opts.is_set(options.MERGE_MODE) or opts.is_set(options.MERGE_STRATEGY_ID)
    if payload is None and named:
        if settings.mode is MergeMode.CUSTOM:
            raise ConfigError(
                "mergers by strategy id require table version 8 or later; version 6 supports payload classes only"
            )
        payload = DEFAULT_PAYLOAD if settings.mode is _EVENT else OVERWRITE_PAYLOAD
        properties[property_keys.PAYLOAD_CLASS] = payload
    if opts.get_typed(options.TABLE_TYPE) is TableType.MERGE_ON_READ:
        properties[property_keys.PAYLOAD_CLASS] = payload or OVERWRITE_PAYLOAD
        properties[property_keys.RECORD_MERGER_STRATEGY] = EVENT_TIME_STRATEGY
    return properties


def resolve_merge_settings(
    properties: Mapping[str, str], version: int, ordering: tuple[str, ...], write_payload: str | None = None
) -> MergeSettings:
    """Return the merge settings of a table from its properties.

    *write_payload* is the payload class in the options of a write, because copy-on-write tables of version 6 do not
    store theirs.
    """
    merge_properties = {
        key.removeprefix(RECORD_MERGE_PROPERTY_PREFIX): value
        for key, value in properties.items()
        if key.startswith(RECORD_MERGE_PROPERTY_PREFIX)
    }
    payload = properties.get(property_keys.PAYLOAD_CLASS) or None
    mode = _stored(properties, property_keys.RECORD_MERGE_MODE, MergeMode)
    if version < 8 or (mode is None and payload):
        return _as_payload(from_payload(payload or write_payload or OVERWRITE_PAYLOAD, ordering, merge_properties))
    if mode is None:
        mode = _MODE_OF.get(properties.get(property_keys.RECORD_MERGE_STRATEGY_ID, ""), _EVENT if ordering else _COMMIT)
    strategy = properties.get(property_keys.RECORD_MERGE_STRATEGY_ID) or _STRATEGY_OF.get(mode, PAYLOAD_STRATEGY)
    if mode is MergeMode.CUSTOM and strategy == PAYLOAD_STRATEGY and payload:
        return _as_payload(from_payload(payload, ordering, merge_properties))
    partial = _stored(properties, property_keys.PARTIAL_UPDATE_MODE, PartialUpdateMode)
    return MergeSettings(
        mode,
        strategy,
        ordering,
        partial,
        None,
        properties.get(property_keys.LEGACY_PAYLOAD_CLASS) or None,
        mode,
        merge_properties,
        partial,
    )


def with_delete_marker(settings: MergeSettings, opts: Options) -> MergeSettings:
    """Return the settings with the delete field and marker of a write, if the table stores none.

    Tables of version 6 and those of release 1.0 never store them, so every writer must set them.

    Raises ConfigError if one is set without the other.
    """
    markers = {
        option.key: opts.get_typed(option) for option in (options.PAYLOAD_DELETE_FIELD, options.PAYLOAD_DELETE_MARKER)
    }
    named = {key: value for key, value in markers.items() if value}
    if not named:
        return settings
    properties = {**named, **settings.properties}
    missing = [key for key in markers if key not in properties]
    if missing:
        raise ConfigError(
            f"{next(iter(named))} is set without {missing[0]}; deletes are recognised by both, so set both or none"
        )
    return replace(settings, properties=properties)


E = TypeVar("E", bound=StrEnum)


def _stored(properties: Mapping[str, str], key: str, kind: type[E]) -> E | None:
    text = properties.get(key)
    if not text:
        return None
    try:
        return kind(text.upper())
    except ValueError:
        raise UnsupportedTableError(
            f"hoodie.properties contains {key}={text}; this release supports {', '.join(kind)}"
        ) from None
