"""Write operations and their effect on files and timeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import IndexType, Operation, TableType
from pyhudi.errors import InvalidOptionError
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.timeline.commit_metadata import REPLACED_SCHEMA
from pyhudi.timeline.instant import Action
from pyhudi.timeline.operation_types import OVERWRITES

PREPPED = "_prepped"
REPLACING = frozenset(operation for operation in Operation if operation.value.upper() in OVERWRITES)
"""Operations that replace file groups, with a replacecommit."""
DELETING = frozenset({Operation.DELETE, Operation.DELETE_PARTITION})
"""Operations that require an existing table."""
_DELETING_PAYLOAD = "EmptyHoodieRecordPayload"


def action_of(operation: Operation, table_type: TableType) -> str:
    """Return the timeline action with which an operation is committed."""
    if operation in REPLACING:
        return Action.REPLACE_COMMIT
    return Action.DELTA_COMMIT if table_type is TableType.MERGE_ON_READ else Action.COMMIT


def merges_records(operation: Operation, opts: Options) -> bool:
    """Return True if rows of a write are merged with the stored records of their keys according to the merge rules of
    the table."""
    if operation.changes_records:
        return True
    if opts.get_typed(options.MERGE_ALLOW_DUPLICATE_ON_INSERTS):
        return False
    # without buckets a bulk_insert writes no existing file group
    in_buckets = operation is Operation.BULK_INSERT and opts.get_typed(options.INDEX_TYPE) is IndexType.BUCKET
    return operation is Operation.INSERT or in_buckets


def type_name(operation: Operation) -> str:
    """Return the operation as in commit metadata."""
    return operation.value.upper()


def check_operation(operation: Operation) -> None:
    """Refuse operations that are not supported for DataFrames.

    Raises:
        InvalidOptionError: The operation requires records with file groups.
    """
    name, rescales = operation.value, operation is Operation.BUCKET_RESCALE
    if not (name.endswith(PREPPED) or rescales):
        return
    others = (op for op in Operation if op is not Operation.BUCKET_RESCALE)
    usable = ", ".join(op.value for op in others if not op.value.endswith(PREPPED))
    if rescales:
        usable += f" ({name} rewrites what is stored: CALL partition_bucket_index_manager)"
    else:
        usable += f" ({name} requires records with file groups, which a DataFrame does not have: "
        usable += f"use {name.removesuffix(PREPPED)})"
    raise InvalidOptionError(options.OPERATION.key, name, usable)


def with_operation_of_payload(opts: Options) -> Options:
    """Return the options with the operation ``delete`` in place of an upsert with the payload class
    EmptyHoodieRecordPayload, by which releases without that operation delete records."""
    payload = opts.get_typed(options.PAYLOAD_CLASS) or ""
    if payload.rpartition(".")[2] != _DELETING_PAYLOAD or opts.get_typed(options.OPERATION) is not Operation.UPSERT:
        return opts
    other_options = {key: value for key, value in opts.items() if key != options.PAYLOAD_CLASS.key}
    return Options.parse({**other_options, options.OPERATION.key: Operation.DELETE.value})


def match_partitions(patterns: str, partitions: Sequence[str]) -> list[str]:
    """Resolve a comma-separated list of partition paths in which ``*`` matches any text, including slashes.

    Paths without ``*`` are kept, whether they exist or not. Sorted, without duplicates.
    """
    return sorted({path for entry in _entries(patterns) for path in _matched(entry, partitions)})


def unmatched_partitions(patterns: str, partitions: Sequence[str]) -> list[str]:
    """Return the entries of such a list that no partition matches."""
    existing = set(partitions)
    return [entry for entry in _entries(patterns) if existing.isdisjoint(_matched(entry, partitions))]


def _entries(patterns: str) -> list[str]:
    return [entry for entry in (part.strip() for part in patterns.split(",")) if entry]


def _matched(entry: str, partitions: Sequence[str]) -> list[str]:
    if "*" not in entry:
        return [entry.strip("/")]
    pattern = re.compile(".*".join(re.escape(piece) for piece in entry.split("*")), re.DOTALL)
    return [path for path in partitions if pattern.fullmatch(path)]


def groups_to_replace(slices: pa.Table, partitions: Iterable[str] | None) -> pa.Table:
    """Return the file groups (REPLACED_SCHEMA) that are replaced when these partitions (None: all) are overwritten.

    ``slices`` has the columns partition and file_id of all visible groups. A partition without any has a row without
    file id, because the replacecommit lists it, too.
    """
    groups = slices.select(["partition", "file_id"])
    if partitions is None:
        return groups.cast(REPLACED_SCHEMA)
    paths = pa.array(sorted(set(partitions)), pa.string())
    groups = groups.filter(pc.is_in(groups["partition"], value_set=paths))
    empty = paths.filter(pc.invert(pc.is_in(paths, value_set=groups["partition"].combine_chunks())))
    bare = pa.table([empty, pa.nulls(len(empty), pa.string())], schema=REPLACED_SCHEMA)
    return pa.concat_tables([groups.cast(REPLACED_SCHEMA), bare])


def replaced_files(slices: pa.Table, replaced: pa.Table | None) -> pa.Table:
    """Return the base files and log files (partition, path) of replaced file groups."""
    replaced_slices = slices.slice(0, 0) if replaced is None else slices.filter(in_groups(slices, replaced))
    replaced_slices = replaced_slices.select(["partition", "base_path", "log_paths"]).combine_chunks()
    base = replaced_slices.filter(pc.is_valid(replaced_slices["base_path"])).select(["partition", "base_path"])
    logs = replaced_slices["log_paths"].combine_chunks()
    owners = replaced_slices["partition"].take(pc.list_parent_indices(logs))
    names = ["partition", "path"]
    return pa.concat_tables([base.rename_columns(names), pa.table([owners, pc.list_flatten(logs)], names=names)])
