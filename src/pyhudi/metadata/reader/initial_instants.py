"""Instants of a metadata table that initialize a partition; docs/format/metadata.md, section 1.7."""

from __future__ import annotations

from pyhudi.timeline.instant import Instant

FIRST_INSTANTS = "0" * 14
"""Prefix of instants that initialize a partition of the metadata table."""
V1_LENGTH = 17
"""Digits of an instant; those of a metadata table of version 6 may be followed by three more."""
_BUILDS = ("010", "011", "012", "013", "014", "015", "016", "017", "018", "019")


def is_initial_instant(instant: Instant) -> bool:
    """Return True if an instant of a metadata table initializes a partition."""
    requested = instant.requested
    if requested.startswith(FIRST_INSTANTS):
        return True
    return len(requested) == V1_LENGTH + 3 and requested[V1_LENGTH:] in _BUILDS
