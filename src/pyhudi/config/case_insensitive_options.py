"""Options of a reader or writer as Spark stores them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.config.option import option_text
from pyhudi.config.option_registry import declared


def with_options(options: Mapping[str, str], added: Mapping[str, Any]) -> dict[str, str]:
    """Return options with others added, which take precedence.

    Args:
        options: Options to which others are added.
        added: Options to add. Keys are case-insensitive; options that are None are skipped.
    """
    merged = dict(options)
    for key, value in added.items():
        if value is not None:
            for other in [one for one in merged if one.lower() == key.lower()]:
                del merged[other]
            merged["path" if key.lower() == "path" else declared(key)] = option_text(value)
    return merged
