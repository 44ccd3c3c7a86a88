"""Payload classes of older releases: names in options and properties, which are translated and never loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.config import options
from pyhudi.config.enums import MergeMode, PartialUpdateMode
from pyhudi.table.config.merge_settings import (
    DELETE_FIELD,
    DELETE_MARKER,
    PAYLOAD_STRATEGY,
    STRATEGY_OF_MODE,
    UNAVAILABLE_VALUE,
    MergeSettings,
)

MODEL_PACKAGE = "org.apache.hudi.common.model."
"""Java package of the payload classes."""
OVERWRITE_PAYLOAD = MODEL_PACKAGE + "OverwriteWithLatestAvroPayload"
DEFAULT_PAYLOAD = MODEL_PACKAGE + "DefaultHoodieRecordPayload"
_PARTIAL_UPDATE_PAYLOAD = MODEL_PACKAGE + "PartialUpdateAvroPayload"
_DEBEZIUM_PAYLOADS = MODEL_PACKAGE + "debezium."
POSTGRES_PAYLOAD = _DEBEZIUM_PAYLOADS + "PostgresDebeziumAvroPayload"


@dataclass(frozen=True, slots=True)
class PayloadTranslation:
    """Meaning of a payload class. ``sequence``: column of sequences (`MergeSettings`) by which the class orders below
    version 9, instead of ``ordering``."""

    mode: MergeMode
    partial: PartialUpdateMode | None = None
    ordering: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    sequence: str | None = None


_DEBEZIUM_DELETE = {DELETE_FIELD: "_change_operation_type", DELETE_MARKER: "d"}
_COMMIT, _EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING

PAYLOADS: Mapping[str, PayloadTranslation] = {
    OVERWRITE_PAYLOAD: PayloadTranslation(_COMMIT),
    DEFAULT_PAYLOAD: PayloadTranslation(_EVENT),
    MODEL_PACKAGE + "EventTimeAvroPayload": PayloadTranslation(_EVENT),
    MODEL_PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload": PayloadTranslation(
        _COMMIT, PartialUpdateMode.IGNORE_DEFAULTS
    ),
    _PARTIAL_UPDATE_PAYLOAD: PayloadTranslation(_EVENT, PartialUpdateMode.IGNORE_DEFAULTS),
    MODEL_PACKAGE + "AWSDmsAvroPayload": PayloadTranslation(
        _COMMIT, properties={DELETE_FIELD: "Op", DELETE_MARKER: "D"}
    ),
    POSTGRES_PAYLOAD: PayloadTranslation(
        _EVENT,
        PartialUpdateMode.FILL_UNAVAILABLE,
        ("_event_lsn",),
        {**_DEBEZIUM_DELETE, UNAVAILABLE_VALUE: options.PAYLOAD_UNAVAILABLE_VALUE.default},
    ),
    _DEBEZIUM_PAYLOADS + "MySqlDebeziumAvroPayload": PayloadTranslation(
        _EVENT, None, ("_event_bin_file", "_event_pos"), _DEBEZIUM_DELETE, "_event_seq"
    ),
}
"""Payload classes of older releases that are equivalent to a merge mode with some properties."""


def from_payload(payload: str, ordering: tuple[str, ...], more: Mapping[str, str] | None) -> MergeSettings:
    """Return the settings of a payload class; an unknown class is CUSTOM.

    Args:
        payload: Name of the class.
        ordering: Ordering columns; a class may have its own.
        more: Merge properties in addition to those of the class.
    """
    translation = PAYLOADS.get(payload)
    if translation is None:
        return MergeSettings(
            MergeMode.CUSTOM,
            PAYLOAD_STRATEGY,
            ordering,
            payload_class=payload,
            dedupe_mode=MergeMode.CUSTOM,
            properties=dict(more or {}),
        )
    return MergeSettings(
        translation.mode,
        STRATEGY_OF_MODE[translation.mode],
        translation.ordering or ordering,
        translation.partial,
        legacy_payload=payload,
        dedupe_mode=translation.mode,
        properties={**(more or {}), **translation.properties},
        dedupe_partial_mode=translation.partial,
    )


def as_payload(settings: MergeSettings, *, copy_on_write: bool) -> MergeSettings:
    """Return the settings of a known payload class below version 9, where it still acts as a class.

    In copy-on-write tables late deletes of Debezium lose, as in all releases; in log files they win.
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
        compares_sequences=sequence is not None,
        dedupe_mode=_EVENT if ordering else _COMMIT,
        dedupe_partial_mode=settings.partial_update_mode if partial else None,
        deletes_win=partial or (payload.startswith(_DEBEZIUM_PAYLOADS) and not copy_on_write),
    )
