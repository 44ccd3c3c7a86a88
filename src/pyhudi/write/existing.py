"""What a write has to learn from the files that a table has, because its properties do not say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.errors import UnsupportedTableError
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.table.bucketed import bucket_evidence
from pyhudi.table.fsview import FileSystemView
from pyhudi.write.basereader import open_base, read_footer

if TYPE_CHECKING:
    from pyhudi.table.metaclient import TableMetaClient

_KEY_SCHEMA = pa.schema([(RECORD_KEY, pa.string())])


def check_not_bucketed(client: TableMetaClient) -> None:
    """Refuse a table that was written with the bucket index, whatever index the options name now.

    Raises:
        UnsupportedTableError: says what shows it.
    """
    evidence = bucket_evidence(client)
    if evidence is not None:
        raise UnsupportedTableError(
            f"table {client.config.name!r} was written with the bucket index ({evidence}), in which a file's name says "
            "which keys it holds. That is not supported yet, and records written without it would not be found again"
        )


def sample_keys(client: TableMetaClient) -> tuple[str, ...]:
    """A few record keys of the table; none if it is empty or its files hold no keys."""
    if not client.config.populate_meta_fields:
        return ()
    for path in FileSystemView.load(client).latest_base_files()["path"].to_pylist():
        footer = read_footer(client.storage, path)
        if footer.min_key is not None and footer.max_key is not None:
            return (footer.min_key, footer.max_key)
        if not footer.num_rows:
            continue
        with open_base(client.storage, path) as base:
            keys = next(base.batches(_KEY_SCHEMA)).column(RECORD_KEY)
            return (keys[0].as_py(), keys[-1].as_py())
    return ()
