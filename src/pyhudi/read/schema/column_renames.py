"""Columns that were renamed, or dropped and added anew, under schema-on-read (``ALTER TABLE`` in Apache Hudi's SQL).

Files keep the names they were written with. The table keeps a history of its schemas in ``.hoodie/.schema``, in which
every column has an id that never changes: a column of the query is the column with the same id in the schema that was
in force when the file was written.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyhudi.errors import CorruptTableError, UnsupportedTableError
from pyhudi.timeline.instant import Action
from pyhudi.timeline.timeline_layout import META_FOLDER

if TYPE_CHECKING:
    from pyhudi.timeline.active_timeline import ActiveTimeline

LATEST_SCHEMA = "latest_schema"
"""Key of the commit metadata of tables that keep a schema history."""

SCHEMA_FOLDER = f"{META_FOLDER}/.schema"

Names = Mapping[str, str | None]
"""Column of the table → its name in a file, or None where the file has a column of that name that is another one."""


@dataclass(frozen=True, slots=True)
class _Version:
    names: Mapping[int, str]
    nested: Mapping[int, Any]


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """The schemas of a table, oldest first, by the instant from which each was in force."""

    since: tuple[str, ...]
    versions: tuple[_Version, ...]

    @classmethod
    def load(cls, active: ActiveTimeline) -> SchemaHistory | None:
        """Read the newest history file of a completed write; None when the table has none. A write leaves its file
        before it completes, so that there may be some of writes that died.

        Raises:
            CorruptTableError: it cannot be parsed.
        """
        storage = active.storage
        names = [path.rpartition("/")[2] for path in storage.list(SCHEMA_FOLDER)["path"].to_pylist()]
        parsed = [instant for instant in map(active.layout.parse, names) if instant is not None]
        counts = active.timeline.contains_or_before_start
        done = [i for i in parsed if i.is_completed and i.action == Action.SCHEMA_COMMIT and counts(i.requested)]
        if not done:
            return None
        newest = max(done, key=lambda i: i.requested).file_name
        try:
            schemas = json.loads(storage.read(f"{SCHEMA_FOLDER}/{newest}"))["schemas"]
            found = sorted((_since(s["version_id"]), _version(s["fields"])) for s in schemas)
        except (ValueError, KeyError, TypeError) as e:
            file = storage.uri(f"{SCHEMA_FOLDER}/{newest}")
            raise CorruptTableError(f"the schema history {file} cannot be parsed: {type(e).__name__}: {e}") from e
        return cls(tuple(s for s, _ in found), tuple(v for _, v in found))

    def names_in_files(self, columns: Iterable[str], as_of: str | None, instants: Iterable[str]) -> dict[str, Names]:
        """Return, for each instant whose files have other names than the query, the names of its columns there.

        ``columns`` are the query's top-level columns, ``as_of`` the requested time whose schema they are (None: the
        newest).

        Raises:
            UnsupportedTableError: a field inside a column was renamed or replaced.
        """
        wanted = list(columns)
        query = self._at(as_of)
        ids = {name: id_ for id_, name in query.names.items()}
        found: dict[str, Names] = {}
        for instant in instants:
            there = self._at(instant)
            names: dict[str, str | None] = {}
            taken = {name: id_ for id_, name in there.names.items()}
            for name in wanted:
                id_ = ids.get(name)
                if id_ is None:
                    continue
                if id_ in there.nested and id_ in query.nested and not _agree(there.nested[id_], query.nested[id_]):
                    raise UnsupportedTableError(
                        f"a field inside column {name!r} was renamed or replaced after {instant}; reading such nested "
                        "changes is not built yet. Leave the column out, or rewrite the table"
                    )
                old = there.names.get(id_)
                if old is not None and old != name:
                    names[name] = old
                elif old is None and name in taken:
                    names[name] = None
            if names:
                found[instant] = names
        return found

    def unchanged(self) -> frozenset[str]:
        """Names of top-level columns that have always been those of one column, which never had another name."""
        columns: dict[str, set[int]] = {}
        names: dict[int, set[str]] = {}
        for version in self.versions:
            for id_, name in version.names.items():
                columns.setdefault(name, set()).add(id_)
                names.setdefault(id_, set()).add(name)
        return frozenset(name for name, ids in columns.items() if len(ids) == 1 and len(names[next(iter(ids))]) == 1)

    def _at(self, instant: str | None) -> _Version:
        if instant is None:
            return self.versions[-1]
        return self.versions[max(bisect_right(self.since, instant) - 1, 0)]


def _since(version: int) -> str:
    return "" if version == 0 else str(version)


def _version(fields: list[dict[str, Any]]) -> _Version:
    names = {int(f["id"]): str(f["name"]) for f in fields}
    return _Version(names, {int(f["id"]): _ids(f["type"]) for f in fields if isinstance(f["type"], dict)})


def _ids(kind: Any) -> Any:
    """Ids and names of the fields inside a type: id → (name, what is inside)."""
    if not isinstance(kind, dict):
        return {}
    if kind.get("type") == "record":
        return {int(f["id"]): (f["name"], _ids(f["type"])) for f in kind["fields"]}
    return {part: ("", _ids(kind[part])) for part in ("element", "key", "value") if part in kind}


def _agree(old: dict[Any, tuple[str, Any]], new: dict[Any, tuple[str, Any]]) -> bool:
    by_name = {name: id_ for id_, (name, _) in old.items() if name}
    for id_, (name, inside) in new.items():
        if id_ in old:
            if old[id_][0] != name or not _agree(old[id_][1], inside):
                return False
        elif name in by_name:
            return False
    return True
