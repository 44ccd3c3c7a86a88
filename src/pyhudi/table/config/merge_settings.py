"""Merge settings of a table, in the terms of version 9.

`resolved_merge_settings` has those of a stored table, `new_merge_settings` those of a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyhudi.config import Options, options
from pyhudi.config.enums import MergeMode, PartialUpdateMode
from pyhudi.errors import ConfigError

COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
PAYLOAD_STRATEGY = "00000000-0000-0000-0000-000000000000"

BUILT_IN_STRATEGIES: Mapping[str, str] = {
    COMMIT_TIME_STRATEGY: "COMMIT_TIME_ORDERING",
    EVENT_TIME_STRATEGY: "EVENT_TIME_ORDERING",
    PAYLOAD_STRATEGY: "payload classes",
}
"""Strategy ids with a predefined meaning in Apache Hudi."""

DELETE_FIELD = options.PAYLOAD_DELETE_FIELD.key
DELETE_MARKER = options.PAYLOAD_DELETE_MARKER.key
UNAVAILABLE_VALUE = options.PAYLOAD_UNAVAILABLE_VALUE.key

STRATEGY_OF_MODE = {
    MergeMode.COMMIT_TIME_ORDERING: COMMIT_TIME_STRATEGY,
    MergeMode.EVENT_TIME_ORDERING: EVENT_TIME_STRATEGY,
}
MODE_OF_STRATEGY = {strategy: mode for mode, strategy in STRATEGY_OF_MODE.items()}


@dataclass(frozen=True, slots=True)
class MergeSettings:
    """Merge settings of a table, in the terms of version 9.

    ``payload_class`` is set for the mode CUSTOM by payload, ``legacy_payload`` if a known class was translated.
    ``properties`` are merge properties without their prefix: delete field and marker, the unavailable value.
    ``dedupe_mode`` and ``dedupe_partial_mode`` apply between records of one batch. They differ from ``mode`` and
    ``partial_update_mode`` only below version 9, where payload classes have a separate method for this: most compare
    ordering values and fill nothing. ``deletes_win``: a delete applies regardless of its ordering value, as in some
    payload classes below version 9. ``compares_sequences``: ordering values are dotted numbers such as ``000012.345``,
    which are compared number by number.
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
    compares_sequences: bool = False

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
        deleted records reappear."""
        marker = self.properties.get(DELETE_FIELD)
        return {"ordering": self.ordering_fields, "delete marker": (marker,) if marker else ()}


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
