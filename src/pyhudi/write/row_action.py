"""Actions of the rows of a MERGE that is executed as an upsert.

Most of them are updates or new records, as of any upsert, or deletes. The others are conditional: what they do depends
on a lookup that finds no keys but those of records.
"""

from __future__ import annotations

from enum import IntEnum

ROW_ACTION = "_pyhudi_row_action"
"""Int: a `RowAction`; only of the rows of a MERGE whose clauses do not apply to all of them."""


class RowAction(IntEnum):
    """What a row does if the table has its key, and if not."""

    UPSERT = 0
    """Updates the record with the key, or is a new record."""
    UPDATE = 1
    """Updates the record; nothing if there is none."""
    INSERT = 2
    """Is a new record; nothing if the table has the key."""
    DELETE = 3
    """Deletes the record; nothing if there is none."""
    DELETE_OR_INSERT = 4
    """Deletes the record, or is a new record."""


DELETING = (RowAction.DELETE, RowAction.DELETE_OR_INSERT)
"""Actions that delete the record, if there is one."""
CONDITIONAL = (RowAction.UPDATE, RowAction.INSERT, RowAction.DELETE_OR_INSERT)
"""Actions that depend on whether the table has the key."""
