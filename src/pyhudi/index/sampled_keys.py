"""Record keys of a table, sampled from its base files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import InvalidText
from pyhudi.merge.base_file_readers import open_base, read_footer
from pyhudi.schema.meta_fields import RECORD_KEY
from pyhudi.storage import Storage
from pyhudi.table.meta_client import TableMetaClient
from pyhudi.table.view.file_system_view import FileSystemView

_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])


def sample_keys(client: TableMetaClient) -> tuple[str, ...]:
    """Return some record keys of the table; none if it is empty or its files store no keys."""
    if not client.config.populate_meta_fields:
        return ()
    for path in FileSystemView.load(client).latest_base_files()["path"].to_pylist():
        footer = read_footer(client.storage, path)
        if footer.min_key is not None and footer.max_key is not None:
            return (footer.min_key, footer.max_key)
        if not footer.num_rows:
            continue
        keys = first_keys(client.storage, path)
        if keys:
            return (keys[0], keys[-1])
    return ()


def first_keys(storage: Storage, path: str, count: int | None = None) -> list[str]:
    """Return the first record keys of a base file, at most ``count``, without invalid UTF-8; none if there are no
    others."""
    with open_base(storage, path, InvalidText.REPLACE) as base:
        for batch in base.batches(_KEY_SCHEMA):
            keys = batch.column(RECORD_KEY)
            valid: list[str] = keys.filter(pc.invert(pc.match_substring(keys, "\ufffd"))).slice(0, count).to_pylist()
            if valid:
                return valid
    return []
