"""Misspelt options that decide what a table becomes: refused, where other unknown ones are warned of."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyhudi.config import options
from pyhudi.config.option_registry import ALIASES, NAMED, OPTIONS, canonical, is_known, spellings, suggest
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
"""Options that, if ignored, make another table, or do something else with its rows."""
_ALIKE = 0.9


def refuse_misspelt(given: Mapping[str, object]) -> None:
    """Refuse keys that look like an option which decides what a table becomes.

    Args:
        given: Options as the user gave them.

    Raises:
        ConfigError: names the key and the one that it looks like.
    """
    for key in given:
        if not isinstance(key, str) or key in NAMED or key in ALIASES or key in OPTIONS:
            continue
        meant = suggest(key) if not is_known(key) else _foreign(key)
        if meant is not None and canonical(meant) in _DECIDING:
            raise ConfigError(
                f"there is no option {key!r}; did you mean {meant!r}? Without it the write would do something else "
                "than is meant: correct the key, or leave it out"
            )


def _foreign(key: str) -> str | None:
    """The deciding option that a key without Apache Hudi's prefix looks like."""
    known = [spelling for deciding in sorted(_DECIDING) for spelling in spellings(deciding)]
    tail = next((name for name in known if name == f"hoodie.{key}"), None)
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=_ALIKE)
    return tail or (close[0] if close else None)
