"""The write operations, and what each of them means for files and timeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import InvalidOptionError
from pyhudi.timeline.instants import Action
from pyhudi.timeline.metadata import REPLACED_SCHEMA

OPERATION_KEY = "hoodie.datasource.write.operation"


class Operation(StrEnum):
    """Operations of `hoodie.datasource.write.operation`; the values are those of commit metadata."""

    BULK_INSERT = "BULK_INSERT"
    INSERT = "INSERT"
    UPSERT = "UPSERT"
    DELETE = "DELETE"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"

    @property
    def replaces(self) -> bool:
        """Whether it takes file groups out of view, as a replacecommit."""
        return self in (self.INSERT_OVERWRITE, self.INSERT_OVERWRITE_TABLE, self.DELETE_PARTITION)

    @property
    def needs_table(self) -> bool:
        """Whether it makes sense only on a table that exists."""
        return self in (self.DELETE, self.DELETE_PARTITION)

    def action(self, *, merge_on_read: bool) -> str:
        """The timeline action under which it is committed."""
        if self.replaces:
            return Action.REPLACE_COMMIT
        return Action.DELTA_COMMIT if merge_on_read else Action.COMMIT


_INTERNAL = {
    "insert_prepped": "records that already know their file groups",
    "upsert_prepped": "records that already know their file groups",
    "bulk_insert_prepped": "records that already know their file groups",
    "delete_prepped": "records that already know their file groups",
}


def parse_operation(text: str) -> Operation:
    """The operation that an option names, in any case.

    Raises:
        InvalidOptionError: there is no such operation, or it is not one that a data frame can be written with.
    """
    name = text.strip().lower()
    if name.upper() in Operation.__members__:
        return Operation[name.upper()]
    allowed = ", ".join(op.value.lower() for op in Operation)
    if name in _INTERNAL:
        allowed += f" ({name} takes {_INTERNAL[name]}, which a data frame cannot carry: use {name[:-8]})"
    raise InvalidOptionError(OPERATION_KEY, text, allowed)


def match_partitions(wanted: str, partitions: Sequence[str]) -> list[str]:
    """Resolve a comma list of partition paths in which ``*`` stands for any text, slashes included.

    Paths without ``*`` are kept as they are, whether they exist or not. Sorted, each once.
    """
    found: set[str] = set()
    for entry in (part.strip() for part in wanted.split(",")):
        if not entry:
            continue
        if "*" not in entry:
            found.add(entry.strip("/"))
            continue
        pattern = re.compile(".*".join(re.escape(piece) for piece in entry.split("*")), re.DOTALL)
        found.update(p for p in partitions if pattern.fullmatch(p))
    return sorted(found)


def replaced_groups(slices: pa.Table, partitions: Iterable[str] | None) -> pa.Table:
    """The file groups (REPLACED_SCHEMA) that go out of view when these partitions (None: all) are replaced.

    ``slices`` has the columns partition and file_id of all visible groups. A partition without any keeps a row
    without file id, because the replacecommit names it all the same.
    """
    groups = slices.select(["partition", "file_id"])
    if partitions is None:
        return groups.cast(REPLACED_SCHEMA)
    wanted = pa.array(sorted(set(partitions)), pa.string())
    groups = groups.filter(pc.is_in(groups["partition"], value_set=wanted))
    empty = wanted.filter(pc.invert(pc.is_in(wanted, value_set=groups["partition"].combine_chunks())))
    bare = pa.table([empty, pa.nulls(len(empty), pa.string())], schema=REPLACED_SCHEMA)
    return pa.concat_tables([groups.cast(REPLACED_SCHEMA), bare])
