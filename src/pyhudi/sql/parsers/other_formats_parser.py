"""Statements of Delta Lake that maintain a table. Of Hudi tables they are refused, with what to use instead."""

from __future__ import annotations

from pyhudi.errors import SqlSyntaxError
from pyhudi.sql.statements import UnsupportedStatement
from pyhudi.sql.token_cursor import Cursor

_CLUSTERING = (
    "CALL run_clustering(table => '…') rewrites small files (order => 'columns', order_strategy => 'z-order'), and "
    "CALL run_compaction(op => 'run', table => '…') merges log files"
)
_STATEMENTS = {
    ("OPTIMIZE",): _CLUSTERING,
    ("REORG", "TABLE"): _CLUSTERING,
    ("VACUUM",): "CALL run_clean(table => '…'); commits clean by themselves as hoodie.clean.policy says",
    ("RESTORE", "TABLE"): (
        "CALL rollback_to_savepoint(table => '…', instant_time => '…') after CALL create_savepoint, or "
        "HudiTable.for_name('…').services.restore(instant)"
    ),
    ("DESCRIBE", "HISTORY"): "CALL show_commits(table => '…')",
    ("DESC", "HISTORY"): "CALL show_commits(table => '…')",
    ("DESCRIBE", "DETAIL"): "DESCRIBE EXTENDED, CALL show_table_properties(table => '…')",
    ("DESC", "DETAIL"): "DESCRIBE EXTENDED, CALL show_table_properties(table => '…')",
    ("FSCK", "REPAIR", "TABLE"): "CALL validate_metadata_table_files(table => '…') compares the files",
}


def parse_of_other_format(cursor: Cursor) -> UnsupportedStatement | None:
    """Parse one of these statements; None if it is another one, or names no table."""
    start = cursor.at
    for words, instead in _STATEMENTS.items():
        if cursor.take(*words):
            try:
                return UnsupportedStatement(cursor.name(), " ".join(words), instead, cursor.text)
            except SqlSyntaxError:  # a path, or DESCRIBE of a table of this name
                break
    cursor.at = start
    return None
