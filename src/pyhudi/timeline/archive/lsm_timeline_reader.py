"""Reader of the archived timeline of layout 2: Parquet files that a manifest lists.

A file ``_version_`` has the number of the manifest; other files are garbage. File names contain the first and last
instant of the file, but not reliably (an upgrade from version 6 writes them in the order of the old archive), so only
Parquet statistics are used to skip files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyhudi.errors import CorruptInstantError, FormatError, NotFoundError
from pyhudi.format.corruption_errors import as_corruption
from pyhudi.storage import Storage
from pyhudi.storage.concurrent_reads import concurrent_map
from pyhudi.timeline.archive.archived_instants import ARCHIVED_INSTANTS_SCHEMA, CACHE
from pyhudi.timeline.timeline_layout import Layout

_LSM_COLUMNS = {
    "requested": "instantTime",
    "completion": "completionTime",
    "action": "action",
    "metadata": "metadata",
    "plan": "plan",
}
_INSTANT_COLUMNS = ("requested", "completion", "action")
_NO_METADATA, _NO_PLAN = (
    (pa.field(_LSM_COLUMNS[name], pa.binary()), pa.chunked_array([], pa.binary())) for name in ("metadata", "plan")
)
VERSION_FILE = "_version_"
"""File with the number of the current manifest."""
_MANIFEST_NAME = r"/manifest_(?P<number>\d+)$"


def read_lsm_timeline(storage: Storage, layout: Layout, names: list[str], condition: pc.Expression | None) -> pa.Table:
    def read_file(file: Mapping[str, Any]) -> pa.Table:
        path = f"{layout.history}/{file['fileName']}"
        read = _read_lsm_file(storage, path, file["fileLen"], names, condition)
        columns = [
            read[_LSM_COLUMNS[f.name]].cast(f.type) if f.name in names else pa.nulls(read.num_rows, f.type)
            for f in ARCHIVED_INSTANTS_SCHEMA
        ]
        return pa.Table.from_arrays(columns, schema=ARCHIVED_INSTANTS_SCHEMA)

    # Most names start with the first instant, so that the result is already sorted.
    files = sorted(manifest_files(storage, layout), key=itemgetter("fileName"))
    if "metadata" in names or len(files) < 2:  # metadata may be large
        tables = [read_file(file) for file in files]
    else:
        tables = concurrent_map(read_file, files)
    return pa.concat_tables([ARCHIVED_INSTANTS_SCHEMA.empty_table(), *tables])


def _read_lsm_file(
    storage: Storage, path: str, length: int, names: list[str], condition: pc.Expression | None
) -> pa.Table:
    """Return columns of one file of layout 2. ``length`` is that of its manifest; 0 if it is not known."""

    def read(names: Iterable[str], condition: pc.Expression | None) -> pa.Table:
        try:
            with storage.open_input(path) as source, as_corruption("damaged"):
                return pq.read_table(source, columns=[_LSM_COLUMNS[n] for n in names], filters=condition)
        except FormatError as error:
            raise CorruptInstantError(
                f"archive file {storage.uri(path)} is not a Parquet file of the timeline ({error}); restore it from a "
                "backup"
            ) from error

    def instants() -> tuple[pa.Table, int]:
        archived = read(_INSTANT_COLUMNS, None)
        return archived, archived.nbytes

    if not length:
        return read(names, condition)
    key = (storage.root, path, length)
    if "metadata" not in names:
        archived = CACHE.get(key, instants)
        return archived if condition is None else archived.filter(condition)
    cached = CACHE.find(key)
    if cached is not None and condition is not None and not cached.filter(condition).num_rows:
        return cached.slice(0, 0).append_column(*_NO_METADATA).append_column(*_NO_PLAN)
    return read(names, condition)


def manifest_number(storage: Storage, layout: Layout) -> int:
    """Return the number of the current manifest of the archived timeline (layout 2); 0 before the first one.

    Apache Hudi deletes the version file before it writes it anew. In between, and if its process ends there, the newest
    manifest is the current one, to Apache Hudi as well.
    """
    try:
        text = storage.read(f"{layout.history}/{VERSION_FILE}").decode("utf-8", "replace").strip()
    except NotFoundError:
        text = ""
    return int(text) if text.isdecimal() else max(_manifest_numbers(storage, layout), default=0)


def _manifest_numbers(storage: Storage, layout: Layout) -> list[int]:
    """Return the numbers of the manifests, except those that are empty, because their writer has died."""
    files = storage.list(layout.history)
    named = pc.extract_regex(files.filter(pc.greater(files["size"], 0))["path"], _MANIFEST_NAME)
    return [int(number) for number in pc.struct_field(named, "number").to_pylist() if number is not None]


def manifest_files(storage: Storage, layout: Layout, number: int | None = None) -> list[dict[str, Any]]:
    """Return the files (``fileName``, ``fileLen``) of the current manifest, or of the one with the given number; none
    if nothing has been archived.

    Raises:
        CorruptInstantError: The manifest cannot be parsed.
    """
    number = manifest_number(storage, layout) if number is None else number
    if not number:
        return []
    path = f"{layout.history}/manifest_{number}"
    try:
        files = json.loads(storage.read(path))["files"]
        return [{"fileName": str(file["fileName"]), "fileLen": int(file.get("fileLen", 0))} for file in files]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptInstantError(
            f"cannot parse manifest {storage.uri(path)} of the archived timeline ({error!r}); restore it from a "
            f"backup, or write the number of an older manifest into {VERSION_FILE} in its folder"
        ) from error
