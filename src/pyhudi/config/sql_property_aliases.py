"""Short names of options in table properties of SQL, such as ``primaryKey``, and names that resemble them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from pyhudi.config import options

SHORT_NAMES: Mapping[str, str] = {
    "type": options.TABLE_TYPE.key,
    "primaryKey": options.RECORDKEY_FIELD.key,
    "preCombineField": options.PRECOMBINE_FIELD.key,
    "orderingFields": options.PRECOMBINE_FIELD.key,
    "payloadClass": options.PAYLOAD_CLASS.key,
    "mergeMode": options.MERGE_MODE.key,
    "recordMergeMode": options.MERGE_MODE.key,
    "recordMergeStrategyId": options.MERGE_STRATEGY_ID.key,
}
"""Options by short name."""
_BY_FOLDED = {name.lower(): name for name in SHORT_NAMES}
_OTHER_NAMES = {
    "recordkey": "primaryKey",
    "recordkeyfield": "primaryKey",
    "primarykeyfield": "primaryKey",
    "precombine": "preCombineField",
    "precombinekey": "preCombineField",
    "tabletype": "type",
}
"""Names that users give instead, in lower case and without separators."""
_ALIKE = 0.88


def option_of_short_name(key: str) -> str | None:
    """Return the option of a short name, whose case does not count; None for other keys."""
    name = _BY_FOLDED.get(key.lower())
    return None if name is None else SHORT_NAMES[name]


def suggest_short_name(key: str) -> str | None:
    """Return the short name that *key* resembles, if it is none itself."""
    if key.lower() in _BY_FOLDED:
        return None
    folded = re.sub(r"[\s._-]", "", key.lower())
    named = _BY_FOLDED.get(folded) or _OTHER_NAMES.get(folded)
    if named is not None:
        return named
    if sorted(folded) == sorted("type"):  # other words that resemble it are names of their own: types, tape
        return "type"
    close = difflib.get_close_matches(folded, [name for name in _BY_FOLDED if name != "type"], n=1, cutoff=_ALIKE)
    return _BY_FOLDED[close[0]] if close else None
