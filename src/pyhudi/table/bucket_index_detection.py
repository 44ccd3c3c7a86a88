"""Detection of the bucket index, which is rarely recorded in table properties and may be missing in options.

With it, the id of a file group starts with its bucket number, eight digits instead of the first eight characters of a
random UUID, and a key may only be in the file group of its bucket. With consistent hashing, ids are random, and the
mapping of hashes to file groups is in ``.hoodie/.bucket_index``, as is the number of buckets if it differs between
partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.options import INDEX_TYPE
from pyhudi.storage.table_paths import BUCKET_FOLDER
from pyhudi.table.view.file_system_view import FileSystemView

if TYPE_CHECKING:
    from pyhudi.config.options import INDEX_TYPE
from pyhudi.table.view.file_system_view import OpenTable

_BUCKETED = r"^000\d{5}-"
"""Up to 100,000 buckets. One random id in 43,000 has this form, so all of them are checked."""
_BY_IDS = "the ids of file groups are bucket numbers"


def bucket_evidence(table: OpenTable) -> str | None:
    """Return a description of the proof that the table has a bucket index; None if it has none.

    Like `detect_bucket_index`, but all files are listed if those of one commit indicate a bucket index.
    """
    looks = detect_bucket_index(table)
    if looks is None or not looks.startswith(_BY_IDS):
        return looks
    groups = FileSystemView.load(table).latest_slices()["file_id"]
    if not len(groups) or not _all_bucketed(groups):
        return None
    return f"the ids of all file groups are bucket numbers, like {groups[0].as_py()!r}"


def detect_bucket_index(table: OpenTable) -> str | None:
    """Return a description of the indication that the table has a bucket index; None if there is none.

    Costs one listing of a small folder and the metadata of one commit.
    """
    properties = table.config.properties
    if properties.get(INDEX_TYPE.key, "").upper() == "BUCKET":
        return "its properties contain hoodie.index.type=BUCKET"
    if table.storage.list_dirs(BUCKET_FOLDER):
        return f"it has a folder {BUCKET_FOLDER!r}"
    active = table.active_timeline()
    for instant in reversed(list(active.timeline.writes().completed())):
        ids = active.commit_metadata(instant).stats["fileId"]
        if len(ids):
            return f"{_BY_IDS}, like {ids[0].as_py()!r}" if _all_bucketed(ids) else None
    return None


def _all_bucketed(ids: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.match_substring_regex(ids, _BUCKETED)).as_py())
