"""Names of partitions in a Hive metastore: ``column=value/…``, with special characters of values as ``%`` and two hex
digits (``FileUtils.makePartName`` of Hive)."""

from __future__ import annotations

from collections.abc import Sequence

_DEFAULT = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset([*map(chr, range(1, 0x20)), *"\"#%'*/:=?\\\x7f{[]^"])


def partition_name(columns: Sequence[str], values: Sequence[str]) -> str:
    """Return the name of a partition."""
    return "/".join(
        f"{_escape(column.lower())}={_escape(value)}" for column, value in zip(columns, values, strict=True)
    )


def _escape(text: str) -> str:
    if not text:
        return _DEFAULT
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
