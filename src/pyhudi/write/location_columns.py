"""Helper columns of the rows of a write, from tagging to the handles."""

from __future__ import annotations

IS_DELETE = "_pyhudi_delete"
"""Boolean: the row is a delete. Null counts as false."""
FILE_ID = "_pyhudi_file_id"
"""Text: file group of the row; null until new records get one."""
BASE_PATH = "_pyhudi_base_path"
"""Text: that group's current base file, relative to the root of the table; null for a new file group."""
ROW_POSITION = "_pyhudi_row"
"""Bigint: zero-based row in that base file that the record updates or deletes; null for a new record,
`UNKNOWN_POSITION` for one in the file group whose position is unknown (it is found by key) or not needed."""
UNKNOWN_POSITION = -1
PLACEMENT_KEY = "_pyhudi_placement_key"
"""Int: placement key, chosen so that Spark's hash partitioning sends the row to the intended task."""
PARTITION_SHARE = "_pyhudi_partition_share"
"""Text: the file groups of its partition that a task writes (`PartitionShare`); only of rows that are tagged in tasks,
which have no file group."""
STATUS = "status"
"""Binary: the only column returned by handles, an Arrow IPC stream of write stats."""
