"""Helper columns that travel with the rows of a write, from tagging to the handles."""

from __future__ import annotations

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY

DELETE = "_pyhudi_delete"
"""Boolean: the row is a delete. Null counts as false."""
FILE_ID = "_pyhudi_file_id"
"""Text: the file group the row goes to; null before new records got one."""
BASE_PATH = "_pyhudi_base_path"
"""Text: that group's current base file, relative to the table's root; null for a new file group."""
ROW = "_pyhudi_row"
"""Bigint: zero-based row of that base file which the record updates or deletes; null for a new record, `SOMEWHERE` for
one that is in the file group at a place that has to be found by its key, or needs none."""
SOMEWHERE = -1
TASK = "_pyhudi_task"
"""Int: placement key, chosen so that Spark's hash partitioning sends the row to the intended task."""
STATUS = "status"
"""Binary: the only column that handles give back, an Arrow IPC stream of write stats."""

TAG_COLUMNS = (DELETE, FILE_ID, BASE_PATH, ROW)
HELPER_COLUMNS = frozenset((RECORD_KEY, PARTITION_PATH, TASK, *TAG_COLUMNS))
"""Every column of an incoming batch that is not a column of the user."""
