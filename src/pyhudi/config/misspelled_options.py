"""Detection of misspelt options that would change the created table or the written rows.

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


def refuse_misspelt(given: Mapping[str, object]) -> None:
    """Raise an error for unknown keys that resemble an option of `_DECIDING`.

    Args:
        given: Options as the user passed them.

    Raises:
        ConfigError: A key resembles such an option.
    """
    for key in given:
        if not isinstance(key, str) or is_declared(key):
            continue
        suggestion = suggest(key) if not is_known(key) else _foreign(key)
        if suggestion is not None and canonical(suggestion) in _DECIDING:
            raise ConfigError(
                f"unknown option {key!r}; did you mean {suggestion!r}? If it were ignored, the write would do "
                "something else than intended: correct the key or remove it"
            )


def _foreign(key: str) -> str | None:
    """Return the option of `_DECIDING` that a key without Apache Hudi's prefix resembles."""
    known = [spelling for deciding in sorted(_DECIDING) for spelling in spellings(deciding)]
    tail = next((name for name in known if name == f"hoodie.{key}"), None)
    close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=_ALIKE)
    return tail or (close[0] if close else None)
