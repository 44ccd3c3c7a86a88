"""Rows as they come to a write task, for the tests of this folder."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.write.location_columns import BASE_PATH, FILE_ID, IS_DELETE, ROW_POSITION
from pyhudi.write.settings.write_context import TaskId

FIRST, SECOND, THIRD = "20260101000000000", "20260102000000000", "20260103000000000"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64())])
TASK = TaskId(3, 5, 7)
TAGGED = pa.schema(
    [
        *SCHEMA,
        (RECORD_KEY, pa.string()),
        (PARTITION_PATH, pa.string()),
        (IS_DELETE, pa.bool_()),
        (FILE_ID, pa.string()),
        (BASE_PATH, pa.string()),
        (ROW_POSITION, pa.int64()),
    ]
)
