"""Helper columns of Spark plans that several modules share. Each name has one meaning.

`pyhudi.write.location_columns` has those of the rows that write tasks get. Columns that only one module adds and drops
are declared there; their names differ from all others, too, because plans of several modules are joined.
"""

from __future__ import annotations

SCANNED_FILE = "_pyhudi_scanned_file"
"""Bigint: identifies the base file of a row in a scan (`FileNumbers`)."""
SCANNED_ROW = "_pyhudi_scanned_row"
"""Bigint: zero-based position of a scanned row in its base file."""

SEARCHED_FILE = "_pyhudi_searched_file"
"""Int: number of the base file (`BaseFiles`) in which a key lookup found a key; null: the key is new."""
OLD_PARTITION = "_pyhudi_old_partition"
"""Text: partition in which a key lookup found a key, which may differ from that of the incoming row; null: the key is
new."""
OLD_FILE_ID = "_pyhudi_old_file_id"
"""Text: file group in which a key lookup found a key; null: the key is new."""
OLD_BASE_PATH = "_pyhudi_old_base_path"
"""Text: base file of that file group, relative to the root of the table."""
OLD_FILE_NAME = "_pyhudi_old_file_name"
"""Text: its name without folders."""

STORED_KEY = "_pyhudi_stored_key"
"""Text: the record key with which a row was read from the table; null for a new record."""
STORED_PATH = "_pyhudi_stored_path"
"""Text: the partition path with which it was read."""

INDEX_LOCATION = "_pyhudi_index_location"
"""Int: number of the location to which a record index maps a key; negative: the key is removed from it
(`removed_from`)."""
INDEX_GROUP = "_pyhudi_index_group"
"""Int: number of the file group of an index to which a key or entry belongs; while an index is built, of the range of
keys in the file group (`KeyRanges.group_ranges`)."""
