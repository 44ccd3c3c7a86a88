"""JSON text exactly as written by Apache Hudi's Jackson.

Pretty form: indentation of objects by two blanks, `` : `` between name and value, arrays on one line, ``{ }`` and ``[
]`` if empty. Plain form: no blanks.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

_SHORT_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])")


def quote(text: str) -> str:
    """Return a JSON string: non-ASCII characters unchanged, control characters with upper-case hex."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'  # Fast path for nearly all texts; there is one per file.
    quoted = json.dumps(text, ensure_ascii=False)
    if "\\u00" in quoted:
        quoted = _SHORT_ESCAPE.sub(lambda m: f"{m[1]}\\u00{m[2].upper()}", quoted)
    return quoted


class JsonText(str):
    """JSON text that is already formatted and is inserted unchanged."""

    __slots__ = ()


_name = functools.lru_cache(1024)(quote)


def pretty(value: Any, indent: int = 0) -> str:
    """Return the pretty-printed form of dicts, lists, text, numbers, booleans and None. Dict order is kept."""
    if type(value) is int:
        return str(value)
    if value is None:
        return "null"
    if isinstance(value, dict):
        if not value:
            return "{ }"
        pad = "  " * (indent + 1)
        body = ",\n".join(f"{pad}{_name(str(name))} : {pretty(item, indent + 1)}" for name, item in value.items())
        return f"{{\n{body}\n{'  ' * indent}}}"
    if isinstance(value, (list, tuple)):
        return f"[ {', '.join(pretty(item, indent) for item in value)} ]" if value else "[ ]"
    if isinstance(value, JsonText):
        return value
    return quote(value) if isinstance(value, str) else json.dumps(value)
