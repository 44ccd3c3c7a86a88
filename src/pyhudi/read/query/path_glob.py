"""Hadoop's path globs as regular expressions."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\\(?P<escaped>.)|\[(?P<set>[^]]*)\]|(?P<character>.)", re.DOTALL)
_PATTERNS = {"*": ".*", "?": ".", "{": "(?:"}
_IN_BRACES = {"}": ")", ",": "|"}


def glob_pattern(glob: str) -> str:
    """Return the RE2 regular expression for a path glob; ``*`` also matches ``/``."""
    patterns, depth = [], 0
    for token in _TOKEN.finditer(glob):
        character = token["character"]
        if token["escaped"] is not None:
            patterns.append(re.escape(token["escaped"]))
        elif token["set"] is not None:
            patterns.append(f"[{token['set'].replace('!', '^', 1)}]")
        else:
            special = _PATTERNS | _IN_BRACES if depth else _PATTERNS
            patterns.append(special.get(character) or re.escape(character))
            depth += (character == "{") - (character == "}" and depth > 0)
    return f"^{''.join(patterns)}$"
