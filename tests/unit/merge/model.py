"""Reference implementation of merging, one record at a time: the rules of ``docs/format/core.md``, section 7, as
loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Version:
    """One version of a record. ``ordering`` None: a delete by key. ``absent`` names columns that it omits."""

    values: Mapping[str, Any] = field(default_factory=dict)
    ordering: Any = 0
    delete: bool = False
    absent: frozenset[str] = frozenset()

    @property
    def natural(self) -> bool:
        return self.delete and self.ordering is None


@dataclass(frozen=True)
class ModelRules:
    """``by_ordering``: event time. ``unchanged``: the value that marks a column as unchanged (``...``: none does)."""

    by_ordering: bool = False
    unchanged: Any = ...


def merge(older: Version, newer: Version, rules: ModelRules) -> Version:
    """Return the merge of two versions."""
    if newer.natural:
        return older if older.natural else newer
    if older.natural:
        return older if newer.delete else newer
    if rules.by_ordering and newer.ordering < older.ordering:
        return _filled(older, newer, rules)
    return _filled(newer, older, rules)


def fold(versions: Iterable[Version], rules: ModelRules) -> Version:
    """Return the merge of several versions, given oldest first."""
    result: Version | None = None
    for version in versions:
        result = version if result is None else merge(result, version, rules)
    assert result is not None
    return result


def merge_base(base: Version | None, later: Version, rules: ModelRules) -> Version | None:
    """Return the base row (None if there is none) after later versions; None if the record is deleted."""
    result = later if base is None else merge(base, later, rules)
    return None if result.delete else result


def _filled(strong: Version, weak: Version, rules: ModelRules) -> Version:
    if strong.delete or weak.delete:
        return strong
    values, absent = dict(strong.values), set()
    for name in strong.values:
        if name in strong.absent or strong.values[name] == rules.unchanged:
            if name in weak.absent:
                if name in strong.absent:
                    absent.add(name)
                continue
            values[name] = weak.values[name]
    return Version(values, strong.ordering, False, frozenset(absent))
