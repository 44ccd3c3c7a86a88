"""Detection of options that would change the rows if they were ignored: misspelt ones, and those of other formats.

Other unknown options only raise a warning.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyhudi.config import options
from pyhudi.config.option_registry import canonical, is_declared, is_known, spellings, suggest
from pyhudi.errors import ConfigError

_DECIDING = frozenset(
    option.key
    for option in (
        options.RECORDKEY_FIELD,
        options.PARTITIONPATH_FIELD,
        options.PRECOMBINE_FIELD,
        options.TABLE_NAME,
        options.TABLE_TYPE,
        options.OPERATION,
        options.KEYGENERATOR_TYPE,
        options.KEYGENERATOR_CLASS,
    )
)
"""Options that change the created table or the treatment of its rows if they are ignored."""
_ALIKE = 0.9
_TIME_TRAVEL = f"the option of Hudi tables is {options.AS_OF_INSTANT.key!r}, with an instant or a time"
_PARTITIONS = f"to replace the partitions of the rows, append with {options.OPERATION.key}=insert_overwrite"
_OF_OTHER_FORMATS = {
    "versionasof": _TIME_TRAVEL,
    "timestampasof": _TIME_TRAVEL,
    "as-of-timestamp": _TIME_TRAVEL,
    "snapshot-id": _TIME_TRAVEL,
    "replacewhere": f"delete the rows first, or {_PARTITIONS}",
    "overwrite-mode": _PARTITIONS,
}
"""Options of Delta and Iceberg that decide which rows are read or replaced, in lower case, with what to use instead."""


def refuse_misspelt(given: Mapping[str, object]) -> None:
    """Raise an error for unknown keys that resemble an option of `_DECIDING`, and as `refuse_other_formats`.

    Args:
        given: Options as the user passed them.

    Raises:
        ConfigError: There is such a key.
    """
    refuse_other_formats(given)
    for key in given:
        if not isinstance(key, str) or is_declared(key):
            continue
        suggestion = suggest(key) if not is_known(key) else _foreign(key)
        if suggestion is not None and canonical(suggestion) in _DECIDING:
            raise ConfigError(
                f"unknown option {key!r}; did you mean {suggestion!r}? If it were ignored, the write would do "
                "something else than intended: correct the key or remove it"
            )


def refuse_other_formats(given: Mapping[str, object]) -> None:
    """Raise an error for options of Delta and Iceberg that decide which rows are read or replaced.

    Spark passes unknown options on, so that they would be ignored.

    Args:
        given: Options as the user passed them.

    Raises:
        ConfigError: There is such an option.
    """
    for key, value in given.items():
        cure = _OF_OTHER_FORMATS.get(key.lower()) if isinstance(key, str) else None
        if cure is None and isinstance(key, str) and key.lower() == "partitionoverwritemode":
            cure = _PARTITIONS if str(value).lower() == "dynamic" else None
        if cure is not None:
            raise ConfigError(f"{key}={value} is no option of Hudi tables, and would have no effect: {cure}")


def _foreign(key: str) -> str | None:
    """Return the option of `_DECIDING` that a key without Apache Hudi's prefix resembles."""
    known = [spelling for deciding in sorted(_DECIDING) for spelling in spellings(deciding)]
    tail = next((name for name in known if name == f"hoodie.{key}"), None)
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=_ALIKE)
    return tail or (close[0] if close else None)
