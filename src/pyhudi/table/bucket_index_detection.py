"""Detection of the bucket index, which is rarely recorded in table properties and may be missing in options.

With it, the id of a file group starts with its bucket number, eight digits instead of the first eight characters of a
random UUID, and a key may only be in the file group of its bucket. With consistent hashing, ids are random, and the
mapping of hashes to file groups is in ``.hoodie/.bucket_index``, as is the number of buckets if it differs between
partitions.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.options import INDEX_TYPE
from pyhudi.errors import UnsupportedTableError
from pyhudi.storage.table_paths import BUCKET_FOLDER
from pyhudi.table.view.file_system_view import FileSystemView, OpenTable

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


def check_not_bucketed(table: OpenTable) -> None:
    """Refuse a table that was written with the bucket index, regardless of the index in the options.

    Raises:
        UnsupportedTableError: The message has the evidence.
    """
    evidence = bucket_evidence(table)
    if evidence is not None:
        raise UnsupportedTableError(
            f"table {table.config.name!r} was written with the bucket index ({evidence}), in which the name of a "
            "file determines its keys. Records written without it would not be found: set "
            "hoodie.index.type=BUCKET, and hoodie.bucket.index.num.buckets and hoodie.bucket.index.hash.field to "
            "the values with which the table was created"
        )


def _all_bucketed(ids: pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.match_substring_regex(ids, _BUCKETED)).as_py())
