"""Merge settings of a stored table, from properties in three generations of spellings.

Version 6 has a payload class, version 8 a mode with a strategy id and a payload class, version 9 a mode alone
(``hoodie.record.merge.mode``) with further settings of known payload classes as separate properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from pyhudi.config import property_keys
from pyhudi.config.enums import MergeMode, PartialUpdateMode, TableType
from pyhudi.config.property_keys import RECORD_MERGE_PROPERTY_PREFIX
from pyhudi.errors import UnsupportedTableError
from pyhudi.table.config.merge_settings import MODE_OF_STRATEGY, PAYLOAD_STRATEGY, STRATEGY_OF_MODE, MergeSettings
from pyhudi.table.config.payload_classes import OVERWRITE_PAYLOAD, as_payload, from_payload

_COMMIT, _EVENT = MergeMode.COMMIT_TIME_ORDERING, MergeMode.EVENT_TIME_ORDERING
_E = TypeVar("_E", bound=StrEnum)


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
    copy_on_write = properties.get(property_keys.TYPE) != TableType.MERGE_ON_READ  # the default
    if version < 8 or (mode is None and payload):
        settings = from_payload(payload or write_payload or OVERWRITE_PAYLOAD, ordering, merge_properties)
        return as_payload(settings, copy_on_write=copy_on_write)
    if mode is None:
        mode = MODE_OF_STRATEGY.get(
            properties.get(property_keys.RECORD_MERGE_STRATEGY_ID, ""), _EVENT if ordering else _COMMIT
        )
    strategy = properties.get(property_keys.RECORD_MERGE_STRATEGY_ID) or STRATEGY_OF_MODE.get(mode, PAYLOAD_STRATEGY)
    if mode is MergeMode.CUSTOM and strategy == PAYLOAD_STRATEGY and payload:
        return as_payload(from_payload(payload, ordering, merge_properties), copy_on_write=copy_on_write)
    partial = _stored(properties, property_keys.PARTIAL_UPDATE_MODE, PartialUpdateMode)
    return MergeSettings(
        mode,
        strategy,
        ordering,
        partial,
        legacy_payload=properties.get(property_keys.LEGACY_PAYLOAD_CLASS) or None,
        dedupe_mode=mode,
        properties=merge_properties,
        dedupe_partial_mode=partial,
    )


def _stored(properties: Mapping[str, str], key: str, kind: type[_E]) -> _E | None:
    text = properties.get(key)
    if not text:
        return None
    try:
        return kind(text.upper())
    except ValueError:
        raise UnsupportedTableError(
            f"hoodie.properties contains {key}={text}; this release supports {', '.join(kind)}"
        ) from None
