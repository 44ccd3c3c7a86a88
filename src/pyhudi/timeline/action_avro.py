"""Plans and results of actions other than writes: clean, rollback, savepoint, restore, compaction, clustering, replace
and indexing, as Avro records.

All of them are Avro containers with one record in both layouts. The schemas are package data. Files of older releases
are resolved to the current schema by field name, so that callers see one form. Records are dicts with the field names
of the format. `pyhudi.timeline.plans` has dataclasses of the plans.

Absolute URIs in plans start with the base path that the table had when the plan was made, so only the path after the
partition path (the last segment) is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.errors import FormatError
from pyhudi.format.avro.container import load_schema, read_container, write_container
from pyhudi.timeline.instant import Action, State

_PLANS = {
    Action.CLEAN: "HoodieCleanerPlan",
    Action.ROLLBACK: "HoodieRollbackPlan",
    Action.RESTORE: "HoodieRestorePlan",
    Action.COMPACTION: "HoodieCompactionPlan",
    Action.LOG_COMPACTION: "HoodieCompactionPlan",
    Action.REPLACE_COMMIT: "HoodieRequestedReplaceMetadata",
    Action.CLUSTERING: "HoodieRequestedReplaceMetadata",
    Action.INDEXING: "HoodieIndexPlan",
}
_RESULTS = {
    Action.CLEAN: "HoodieCleanMetadata",
    Action.ROLLBACK: "HoodieRollbackMetadata",
    Action.RESTORE: "HoodieRestoreMetadata",
    Action.SAVEPOINT: "HoodieSavepointMetadata",
    Action.INDEXING: "HoodieIndexCommitMetadata",
}
_BY_VERSION = frozenset(
    {"HoodieCompactionPlan", "HoodieRequestedReplaceMetadata", "HoodieIndexPlan", "HoodieIndexCommitMetadata"}
)


def schema_name(action: str, state: State, version: int) -> str:
    """Return the package schema of an action's file: its plan before completion, its result at completion."""
    name = (_RESULTS if state is State.COMPLETED else _PLANS).get(action)
    if name is None:
        raise FormatError(f"a {state.value.lower()} {action} file has no plan or result")
    return f"{name}.{'v8-v9' if version >= 8 else 'v6'}" if name in _BY_VERSION else name


def decode_record(action: str, state: State, data: bytes) -> dict[str, Any]:
    """Return the record of a plan (requested or inflight) or result (completed) file.

    Raises:
        FormatError: The file is empty, incomplete or of another kind.
    """
    _, records = read_container(data, load_schema(schema_name(action, state, 9)))
    if len(records) != 1:
        raise FormatError(f"a {action} file must hold one Avro record, but has {len(records)}")
    record: dict[str, Any] = records[0]
    return record


def encode_record(action: str, state: State, record: Mapping[str, Any], version: int) -> bytes:
    """Return the bytes of a plan or result file for a table of the given version. Missing fields get their defaults."""
    return write_container(load_schema(schema_name(action, state, version)), [record])


def requested_replace(version: int) -> bytes:
    """Return the content of ``replacecommit.requested`` for insert_overwrite, insert_overwrite_table and
    delete_partition."""
    record = {"operationType": None, "clusteringPlan": None, "extraMetadata": None, "version": None}
    return encode_record(Action.REPLACE_COMMIT, State.REQUESTED, record, version)
