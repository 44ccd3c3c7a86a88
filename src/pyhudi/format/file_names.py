"""Names of data files; parsing is vectorised over Arrow arrays.

Base files are named ``<file id>_<write token>_<instant>.<ext>``, log files ``.<file id>_<instant>.log.<version>_<write
token>``, with the suffix ``.cdc`` for change data files. The write token is ``<task partition>-<stage>-<task attempt>``
and distinguishes retries.
"""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BASE, LOG, CDC, OTHER = "base", "log", "cdc", "other"
"""Values of the column ``kind`` of `parse_names`."""

NAME_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("file_id", pa.string()),
        pa.field("token", pa.string()),
        pa.field("instant", pa.string()),
        pa.field("ext", pa.string()),
        pa.field("log_version", pa.int32()),
    ]
)
"""Schema of the result of `parse_names`. ``ext`` has no dot; for log files it is ``log``. Everything but ``name`` and
``kind`` is null for files that are not data files; ``log_version`` is null for base files."""

# File ids of the metadata table may contain underscores, so they extend as far as the rest still matches.
_BASE_PATTERN = r"^(?P<file_id>[^.].*)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d+)\.(?P<ext>parquet|orc|hfile)$"
_LOG_PATTERN = (
    r"^\.(?P<file_id>.+)_(?P<instant>\d+)\.log\.(?P<version>\d{1,9})(?:_(?P<token>\d+-\d+-\d+))?(?P<cdc>\.cdc)?$"
)
# Those of data tables contain none. Patterns without backtracking are several times faster.
_PLAIN_BASE = r"^(?P<file_id>[^._\n][^_\n]*)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d+)\.(?P<ext>parquet|orc|hfile)$"
_PLAIN_LOG = (
    r"^\.(?P<file_id>[^_\n]+)_(?P<instant>\d+)\.log\.(?P<version>\d{1,9})(?:_(?P<token>\d+-\d+-\d+))?(?P<cdc>\.cdc)?$"
)
_PATH_PATTERN = r"(?s)^(?:(?P<folder>.*)/)?(?P<name>[^/]*)$"


def new_file_prefix() -> str:
    """Return a new UUID text, the common prefix of the ids of all file groups that a task creates.

    It never starts like file ids of the bucket index, with a number of up to five digits.
    """
    prefix = str(uuid.uuid4())
    return new_file_prefix() if prefix[:3] == "000" and prefix[:8].isdigit() else prefix


def file_prefix_of(text: str) -> str:
    """Return a UUID text derived from a text. It never starts like file ids of the bucket index."""
    prefix = str(uuid.uuid5(uuid.NAMESPACE_OID, text))
    return file_prefix_of(prefix) if prefix[:3] == "000" and prefix[:8].isdigit() else prefix


def new_file_id(prefix: str, number: int) -> str:
    """Return the id of the ``number``-th file group (from 0) with a prefix (a UUID text)."""
    return f"{prefix}-{number}"


def write_token(task_partition: int, stage: int, attempt: int) -> str:
    """Return the write token of a task attempt."""
    return f"{task_partition}-{stage}-{attempt}"


def base_file_name(file_id: str, token: str, instant: str, ext: str = "parquet") -> str:
    """Return the name of a base file; ``ext`` with or without leading dot."""
    return f"{file_id}_{token}_{instant}.{ext.removeprefix('.')}"


def instant_of(name: str) -> str:
    """Return the instant in the name of a base file."""
    return name.rpartition("_")[2].partition(".")[0]


def log_file_name(file_id: str, instant: str, version: int, token: str, *, cdc: bool = False) -> str:
    """Return the name of a log file.

    ``instant`` is the base instant of the file slice in tables of version 6, the writing instant from version 8 on.
    """
    return f".{file_id}_{instant}.log.{version}_{token}{'.cdc' if cdc else ''}"


def next_log_version(names: pa.Array | pa.ChunkedArray, file_id: str, base_instant: str) -> int:
    """Return the log version of the next file of a slice in a table of version 6, given the names in its folder.

    It is the maximum version of the slice plus one, regardless of the writer: stores without append need a new file for
    every write.
    """
    files = parse_names(names)
    is_of_slice = pc.and_(pc.equal(files["file_id"], file_id), pc.equal(files["instant"], base_instant))
    versions = files["log_version"].filter(
        pc.and_(is_of_slice, pc.is_in(files["kind"], value_set=pa.array([LOG, CDC])))
    )
    return int(pc.max(versions).as_py() or 0) + 1


def parse_names(names: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Parse file names (without folders) into a table of `NAME_SCHEMA`, one row per name in the given order."""
    flat = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    if not pa.types.is_string(flat.type):
        flat = flat.cast(pa.string())
    starts_with_dot = pc.starts_with(flat, ".")
    base = _extracted(flat, pc.invert(starts_with_dot), _PLAIN_BASE, _BASE_PATTERN)
    if not base.null_count:
        return _all_base(flat, base)
    log = _extracted(flat, starts_with_dot, _PLAIN_LOG, _LOG_PATTERN)
    is_base, is_log = pc.is_valid(base), pc.is_valid(log)
    is_cdc = pc.and_(is_log, pc.equal(pc.struct_field(log, "cdc"), ".cdc"))
    is_cdc = pc.fill_null(is_cdc, False)
    kind = pc.case_when(pc.make_struct(is_base, is_cdc, is_log), BASE, CDC, LOG, OTHER)
    log_token = pc.struct_field(log, "token")
    log_token = pc.if_else(pc.equal(log_token, ""), pa.scalar(None, pa.string()), log_token)
    columns = [
        flat,
        kind,
        pc.coalesce(pc.struct_field(base, "file_id"), pc.struct_field(log, "file_id")),
        pc.coalesce(pc.struct_field(base, "token"), log_token),
        pc.coalesce(pc.struct_field(base, "instant"), pc.struct_field(log, "instant")),
        pc.coalesce(pc.struct_field(base, "ext"), pc.if_else(is_log, "log", pa.scalar(None, pa.string()))),
        pc.struct_field(log, "version").cast(pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=NAME_SCHEMA)


def _all_base(names: pa.Array, parts: pa.StructArray) -> pa.Table:
    """Return the table if all names are those of base files."""
    count = len(names)
    columns = [
        names,
        pa.repeat(pa.scalar(BASE), count),
        *(pc.struct_field(parts, part) for part in ("file_id", "token", "instant", "ext")),
        pa.nulls(count, pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=NAME_SCHEMA)


def _extracted(names: pa.Array, among: pa.Array, plain: str, general: str) -> pa.Array:
    """Match the names ``among`` the given ones against the pattern, first against the plain one."""
    parts = pc.extract_regex(names, plain)
    rest = pc.fill_null(pc.and_(among, parts.is_null()), False)
    count = rest.true_count
    if not count:
        return parts
    more = pc.extract_regex(names.filter(rest), general)
    places = np.arange(len(names))
    places[rest.to_numpy(zero_copy_only=False)] = len(names) + np.arange(count)
    return pa.concat_arrays([parts, more]).take(pa.array(places))


def split_paths(paths: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Split paths at their last slash into folders (``""`` without slash) and names."""
    flat = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    parts = pc.extract_regex(flat, _PATH_PATTERN)
    return pc.fill_null(pc.struct_field(parts, "folder"), ""), pc.struct_field(parts, "name")


def file_names_of(paths: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return what follows the last slash of each path."""
    flat = paths.combine_chunks() if isinstance(paths, pa.ChunkedArray) else paths
    return pc.replace_substring_regex(flat, "(?s)^.*/", "")


def file_paths(folders: pa.Array | pa.ChunkedArray, names: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the paths of files by their folders, which are empty for files without one, and their names."""
    paths = pc.binary_join_element_wise(folders, names, "/")
    at_root = pc.equal(folders, "")
    return pc.if_else(at_root, names, paths) if pc.any(at_root).as_py() else paths


def file_name_of(path: str) -> str:
    """Return what follows the last slash of a path."""
    return path.rpartition("/")[2]
