"""The current slice of each file group of the metadata table, and what is in it: what a compaction merges."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError
from pyhudi.format.filenames import BASE, LOG, parse_names, split_paths
from pyhudi.format.hfile import ENTRY_SCHEMA, HFileReader
from pyhudi.format.log import BlockType, LogBlock, decode_deletes, scan_blocks
from pyhudi.merge.logscan import BlockView, counted_blocks
from pyhudi.metadata.deltas import Records
from pyhudi.metadata.detach import METADATA_FOLDER
from pyhudi.metadata.fold import Version
from pyhudi.metadata.visible import Visible
from pyhudi.schema.columns import RECORD_KEY
from pyhudi.storage import join_path

if TYPE_CHECKING:
    from pyhudi.storage import Storage


@dataclass(frozen=True, slots=True)
class MetadataSlice:
    """One file group of a partition as it is now: names of its base file (None: it has none) and of its log files, in
    the order in which they are merged."""

    partition: str
    file_id: str
    base_instant: str
    base: str | None
    logs: Sequence[str]


def current_slices(storage: Storage, partition: str, visible: Visible, version: int) -> list[MetadataSlice]:
    """The slices of a partition, one for each file group. One listing."""
    names = split_paths(storage.list(join_path(METADATA_FOLDER, partition))["path"])[1]
    files = parse_names(names)
    files = files.filter(pc.is_in(files["kind"], value_set=pa.array([BASE, LOG]))).to_pylist()
    found = []
    for file_id in sorted({file["file_id"] for file in files}):
        mine = [file for file in files if file["file_id"] == file_id]
        bases = [f for f in mine if f["kind"] == BASE and visible.shows_base(f["instant"])]
        base = max(bases, key=lambda f: (f["instant"], f["token"]), default=None)
        logs = [f for f in mine if f["kind"] == LOG]
        if version >= 8:
            since = "" if base is None else base["instant"]
            logs = [f for f in logs if visible.shows(f["instant"]) and visible.completion(f["instant"]) >= since]
            logs.sort(key=lambda f: (visible.completion(f["instant"]), f["log_version"], f["token"] or ""))
        else:
            pending = [f for f in logs if not visible.is_pending(f["instant"])]
            since = base["instant"] if base is not None else max((f["instant"] for f in pending), default="")
            logs = sorted((f for f in pending if f["instant"] == since), key=lambda f: f["log_version"])
        instant = base["instant"] if base is not None else min((f["instant"] for f in logs), default="")
        found.append(
            MetadataSlice(
                partition, file_id, instant, None if base is None else base["name"], [f["name"] for f in logs]
            )
        )
    return found


def read_slice(storage: Storage, one: MetadataSlice, visible: Visible) -> list[Version]:
    """All that counts of a slice, oldest first.

    Raises:
        FormatError: a file is damaged.
        NotFoundError: a file is gone.
    """
    folder = join_path(METADATA_FOLDER, one.partition)
    versions = []
    if one.base is not None:
        with storage.open_input(join_path(folder, one.base)) as source:
            versions.append(_of_hfile(HFileReader(source), None))
    with ExitStack() as stack:
        blocks: list[LogBlock] = []
        for name in one.logs:
            source = stack.enter_context(storage.open_input(join_path(folder, name)))
            blocks += scan_blocks(source)
        versions += [_of_block(block) for block in counted_blocks(blocks, BlockView(committed=visible))]
    return versions


def _of_block(block: LogBlock) -> Version:
    if block.type is BlockType.DELETE:
        keys = decode_deletes(block, pa.schema([])).combine_chunks()[RECORD_KEY]
        deletes = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        return Version(Records(deletes=deletes.cast(pa.string())), "")
    if block.type is not BlockType.HFILE_DATA:
        raise FormatError(f"a log file of the metadata table has a block of type {block.type.name}")
    return _of_hfile(HFileReader(block.content()), block.schema)


def _of_hfile(reader: HFileReader, schema: str | None) -> Version:
    schema = schema or reader.schema
    if schema is None:
        raise FormatError("an HFile of the metadata table has no schema")
    entries = pa.Table.from_batches(reader.batches(), ENTRY_SCHEMA).combine_chunks()
    keys, values = (_flat(entries[name]) for name in ("key", "value"))
    return Version(Records(keys.cast(pa.string()), values), schema)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
