"""Helper columns of the rows of a write, from tagging to the handles."""

from __future__ import annotations

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY

DELETE = "_pyhudi_delete"
"""Boolean: the row is a delete. Null counts as false."""
FILE_ID = "_pyhudi_file_id"
"""Text: file group of the row; null until new records get one."""
BASE_PATH = "_pyhudi_base_path"
"""Text: that group's current base file, relative to the root of the table; null for a new file group."""
ROW = "_pyhudi_row"
"""Bigint: zero-based row in that base file that the record updates or deletes; null for a new record,
`UNKNOWN_POSITION` for one in the file group whose position is unknown (it is found by key) or not needed."""
UNKNOWN_POSITION = -1
TASK = "_pyhudi_task"
"""Int: placement key, chosen so that Spark's hash partitioning sends the row to the intended task."""
STATUS = "status"
"""Binary: the only column returned by handles, an Arrow IPC stream of write stats."""

TAG_COLUMNS = (DELETE, FILE_ID, BASE_PATH, ROW)
HELPER_COLUMNS = frozenset((RECORD_KEY, PARTITION_PATH, TASK, *TAG_COLUMNS))
"""All columns of an incoming batch that are not user columns."""
