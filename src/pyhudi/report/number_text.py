"""Human-readable numbers and times."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def count_text(count: int | None) -> str:
    """Format ``1234567`` as ``1,234,567``; None is empty."""
    return "" if count is None else f"{count:,}"


def bytes_text(size: int | None) -> str:
    """Format a number of bytes in the largest unit in which it is at least 1; None is empty."""
    if size is None:
        return ""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value /= 1024
        unit += 1
    return f"{size} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def instant_text(instant: str) -> str:
    """Format ``20261121094947775`` as ``2026-11-21 09:49:47``; other texts are unchanged."""
    if len(instant) != 17 or not instant.isdigit() or instant.startswith("0000"):
        return instant
    day = f"{instant[:4]}-{instant[4:6]}-{instant[6:8]}"
    return f"{day} {instant[8:10]}:{instant[10:12]}:{instant[12:14]}"
