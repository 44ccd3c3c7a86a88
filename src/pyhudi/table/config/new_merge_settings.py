"""Merge settings of a new table: from the options of its first write, and as properties of its version."""

from __future__ import annotations

from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import MergeMode, TableType
from pyhudi.config.property_keys import RECORD_MERGE_PROPERTY_PREFIX
from pyhudi.errors import ConfigError
from pyhudi.table.config.merge_settings import (
    DELETE_FIELD,
    DELETE_MARKER,
    EVENT_TIME_STRATEGY,
    MODE_OF_STRATEGY,
    PAYLOAD_STRATEGY,
    STRATEGY_OF_MODE,
    UNAVAILABLE_VALUE,
    MergeSettings,
)
from pyhudi.table.config.payload_classes import (
    DEFAULT_PAYLOAD,
    OVERWRITE_PAYLOAD,
    PAYLOADS,
    POSTGRES_PAYLOAD,
    from_payload,
)

_COMMIT, _EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING


def merge_settings_of_new_table(opts: Options) -> MergeSettings:
    """Return the merge settings of a new table from its options.

    A payload class takes precedence, also over the mode CUSTOM, then mode and strategy, then the ordering columns.
    Raises ConfigError if mode, strategy and payload class contradict each other, or merge properties are set that the
    table would not have.
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
        if strategy == EVENT_TIME_STRATEGY and opts.get_typed(options.WRITE_TABLE_VERSION) < 8:
            strategy = None  # the default of releases before 1.0, in which the payload class alone decides
        modes = {
            opts.spelling(options.MERGE_MODE): mode,
            opts.spelling(options.MERGE_STRATEGY_ID): MODE_OF_STRATEGY.get(strategy or ""),
        }
        for key, named in modes.items():
            if named not in (None, MergeMode.CUSTOM, settings.mode):  # CUSTOM: as the payload class says
                raise ConfigError(
                    f"{key}={opts[key]} contradicts the payload class {payload}, which means {settings.mode}; set one "
                    "of the two"
                )
        return settings
    implied = MODE_OF_STRATEGY.get(strategy, MergeMode.CUSTOM) if strategy else None
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
    strategy_id = strategy if mode is MergeMode.CUSTOM and strategy else STRATEGY_OF_MODE[mode]
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
            f"{POSTGRES_PAYLOAD}, and it is {fixed} there; replace the value in the rows"
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


def merge_properties_of_new_table(settings: MergeSettings, opts: Options) -> dict[str, str]:
    """Return the properties with which a new table stores *settings*, which come from *opts*."""
    version = opts.get_typed(options.WRITE_TABLE_VERSION)
    ordering = opts.text(options.ORDERING_FIELDS) or ""
    if version < 8:
        return _properties_of_version_6(settings, opts, ordering)
    properties: dict[str, str] = {
        f"{RECORD_MERGE_PROPERTY_PREFIX}{key}": value for key, value in settings.properties.items()
    }
    return (
        _properties_of_version_8(settings, properties, ordering)
        if version == 8
        else _properties_of_version_9(settings, properties, ordering)
    )


def _properties_of_version_8(
    settings: MergeSettings, merge_properties: dict[str, str], ordering: str
) -> dict[str, str]:
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


def _properties_of_version_9(
    settings: MergeSettings, merge_properties: dict[str, str], ordering: str
) -> dict[str, str]:
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


def _properties_of_version_6(settings: MergeSettings, opts: Options, ordering: str) -> dict[str, str]:
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
