"""Statements that cache tables, and those that maintain what Hudi tables do not have."""

from __future__ import annotations

from pyhudi.sql.property_list import parse_property_list
from pyhudi.sql.statements import (
    CacheTable,
    ClearCache,
    RepairPartitions,
    Statement,
    UncacheTable,
    UnsupportedStatement,
)
from pyhudi.sql.token_cursor import Cursor


def parse_cache(cursor: Cursor) -> CacheTable | None:
    """Parse CACHE TABLE."""
    cursor.expect("CACHE")
    lazy = cursor.take("LAZY")
    if not cursor.take("TABLE"):
        return None
    name = cursor.name()
    options = parse_property_list(cursor) if cursor.take("OPTIONS") else {}
    cursor.take("AS")
    return CacheTable(name, cursor.rest() or None, lazy, options)


def parse_uncache(cursor: Cursor) -> UncacheTable | None:
    """Parse UNCACHE TABLE."""
    cursor.expect("UNCACHE")
    if not cursor.take("TABLE"):
        return None
    cursor.take("IF", "EXISTS")
    return UncacheTable(cursor.name())


def parse_clear(cursor: Cursor) -> ClearCache | None:
    """Parse CLEAR CACHE."""
    return ClearCache() if cursor.take("CLEAR", "CACHE") else None


def parse_msck(cursor: Cursor) -> Statement | None:
    """Parse MSCK REPAIR TABLE, and REPAIR TABLE, which is the same."""
    cursor.take("MSCK")
    return RepairPartitions(cursor.name()) if cursor.take("REPAIR", "TABLE") else None


def parse_analyze(cursor: Cursor) -> Statement | None:
    """Parse ANALYZE TABLE."""
    if not cursor.take("ANALYZE", "TABLE"):
        return None
    instead = "set hoodie.metadata.index.column.stats.enable=true, so that writes keep statistics of columns"
    return UnsupportedStatement(cursor.name(), "ANALYZE TABLE", instead, cursor.text)


def parse_load(cursor: Cursor) -> Statement | None:
    """Parse LOAD DATA."""
    cursor.expect("LOAD")
    cursor.until("INTO")
    if not cursor.take("INTO", "TABLE"):
        return None
    instead = "INSERT INTO … SELECT * FROM parquet.`path of the files`, or the like"
    return UnsupportedStatement(cursor.name(), "LOAD DATA", instead, cursor.text)
