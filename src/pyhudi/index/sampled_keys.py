"""Record keys of a table, sampled from its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.errors import FormatError, NotFoundError
from pyhudi.format.log import DATA_BLOCKS, decode_records
from pyhudi.merge.base_file_readers import open_base, read_footer
from pyhudi.merge.logs.log_file_pool import LogFiles
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_system_view import FileSystemView

_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])
_LOG = r"(^|/)\.[^/]*$"
"""Pattern of the paths of log files."""
_RECENT_WRITES = 10
"""Maximum number of writes whose files are looked into before the table is listed."""


def sample_keys(table: TableSnapshot) -> tuple[str, ...]:
    """Return some record keys of the table; none if it is empty or its files store no keys.

    They come from a file that one of the newest writes names. Only if there is none, the base files are listed, because
    every write samples keys, and the listing of a large table takes many requests.
    """
    if not table.config.populate_meta_fields:
        return ()
    return next(filter(None, chain(_written_keys(table), _listed_keys(table))), ())


def _written_keys(table: TableSnapshot) -> Iterator[tuple[str, ...]]:
    """Yield keys of the newest writes, newest first: each of a base file, or else of the smallest log file."""
    for instant in list(table.active.timeline.writes().completed())[: -_RECENT_WRITES - 1 : -1]:
        stats = table.active.commit_metadata(instant).stats
        files = stats.filter(pc.greater(stats["numWrites"], 0)).select(["path", "fileSizeInBytes"])
        files = files.append_column("is_log", pc.match_substring_regex(files["path"], _LOG))
        for file in files.sort_by([("is_log", "ascending"), ("fileSizeInBytes", "ascending")]).slice(0, 1).to_pylist():
            keys: tuple[str, ...] = ()
            with suppress(NotFoundError, FormatError):  # It may have been cleaned; files of other writes will do.
                keys = (_keys_of_log if file["is_log"] else _keys_of_base)(table.storage, file["path"])
            yield keys


def _listed_keys(table: TableSnapshot) -> Iterator[tuple[str, ...]]:
    """Yield keys of the latest base files."""
    for path in FileSystemView.load(table).latest_base_files()["path"].to_pylist():
        yield _keys_of_base(table.storage, path)


def _keys_of_base(storage: Storage, path: str) -> tuple[str, ...]:
    footer = read_footer(storage, path)
    if footer.min_key is not None and footer.max_key is not None:
        return (footer.min_key, footer.max_key)
    keys = first_keys(storage, path) if footer.num_rows else ()
    return (keys[0], keys[-1]) if keys else ()


def _keys_of_log(storage: Storage, path: str) -> tuple[str, ...]:
    with LogFiles(storage) as files:
        for block in files.blocks([path]):
            if block.type in DATA_BLOCKS:
                rows = decode_records(block, columns=[RECORD_KEY], invalid_text=InvalidText.REPLACE)
                for batch in rows.to_batches():
                    keys = _valid(batch.column(RECORD_KEY))
                    if len(keys):
                        return (keys[0].as_py(), keys[-1].as_py())
    return ()


def first_keys(storage: Storage, path: str, count: int | None = None) -> list[str]:
    """Return the first record keys of a base file, at most ``count``, without invalid UTF-8; none if there are no
    others."""
    with open_base(storage, path, InvalidText.REPLACE) as base:
        for batch in base.batches(_KEY_SCHEMA):
            valid: list[str] = _valid(batch.column(RECORD_KEY)).slice(0, count).to_pylist()
            if valid:
                return valid
    return []


def _valid(keys: pa.StringArray) -> pa.StringArray:
    """Return the keys without those that were not valid UTF-8."""
    return keys.filter(pc.invert(pc.match_substring(keys, "\ufffd")))
