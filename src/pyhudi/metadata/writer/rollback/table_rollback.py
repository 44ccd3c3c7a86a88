"""Rollback of a write to a table, as the metadata table follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyhudi.storage import Storage, join_path
from pyhudi.storage.table_paths import METADATA_FOLDER


@dataclass(frozen=True, slots=True)
class TableRollback:
    """Rollback of a write to a table, as far as the metadata table has to follow it.

    Attributes:
        target: Instant to roll back.
        instant: The rollback instant of the table, which is inflight.
        log_files: Log files that the rollback has written or kept, with sizes, by partition (version 6 only).
        retried: ``target`` may be done again under the same instant.
    """

    target: str
    instant: str
    log_files: Mapping[str, Mapping[str, int]]
    retried: bool


def metadata_uri(storage: Storage, partition: str, name: str) -> str:
    """Return the URI of a file of the metadata table."""
    return storage.uri(join_path(METADATA_FOLDER, partition, name))
