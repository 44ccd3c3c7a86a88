"""Record keys that the bucket index of another table version looks for in another bucket.

Version 6 splits any key with a colon into ``field:value`` parts, later ones only keys with a comma, too
(docs/format/metadata.md, section 7.1).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.errors import UnsupportedTableError
from pyhudi.merge.base_file_readers import open_base
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.table.bucket_index_detection import bucket_evidence
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView

_KEYS = pa.schema([(RECORD_KEY, pa.string())])


def check_bucket_keys(table: TableSnapshot, to: int) -> None:
    """Refuse a change of the version after which keys would be looked for in other buckets, where they are not. Reads
    the keys of the latest base files, if the table has a bucket index.

    Raises:
        UnsupportedTableError: The message has such a key, and the solution.
    """
    config = table.config
    if (to < 8) == (config.version < 8) or not config.populate_meta_fields or bucket_evidence(table) is None:
        return
    paths = FileSystemView.load(table).latest_base_files()["path"].to_pylist()
    moved = next(filter(None, concurrent_map(lambda path: _moved_key(table.storage, path), paths)), None)
    if moved is not None:
        raise UnsupportedTableError(
            f"table {config.name!r} has the key {moved!r}, for which the bucket index of version {to} computes another "
            f"bucket than that of version {config.version}, because it has a colon but no comma: it would not be found "
            "again, and written twice. Copy the rows into a new table"
        )


def _moved_key(storage: Storage, path: str) -> str | None:
    with open_base(storage, path, InvalidText.REPLACE) as base:
        for batch in base.batches(_KEYS):
            keys = batch.column(RECORD_KEY)
            is_moved = pc.and_(pc.match_substring(keys, ":"), pc.invert(pc.match_substring(keys, ",")))
            moved = keys.filter(is_moved)
            if len(moved):
                key: str = moved[0].as_py()
                return key
    return None
