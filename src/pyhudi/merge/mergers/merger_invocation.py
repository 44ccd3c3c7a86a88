"""Invocation of custom mergers on pairs of versions, and on records with many versions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pyhudi.errors import HudiError, MergerError
from pyhudi.merge.mergers.record_merger import RecordMerger, Records, stacked
from pyhudi.merge.ordering_values import Index


def merge_pairs(older: Records, newer: Records, merger: RecordMerger) -> Records:
    """Merge aligned versions, with `RecordMerger.partial_merge` if some omit columns.

    Raises:
        MergerError: The merger failed, or did not return one record per pair.
    """
    if not len(newer):
        return newer
    partly = bool(older.assigned or newer.assigned)
    try:
        merged = merger.partial_merge(older, newer) if partly else merger.merge(older, newer)
    except HudiError:
        raise
    except Exception as error:
        raise MergerError(f"{_name(merger)} failed on {len(newer)} records: {type(error).__name__}: {error}") from error
    return _checked(merged, newer, merger)


def fold_records(versions: Records, record: Index, merger: RecordMerger) -> Records:
    """Merge versions into one per record. ``record`` is the record number of each version, from 0 without gaps.

    Versions are in the order in which they were written. Adjacent ones are merged in pairs until one is left, which
    requires mergers to be associative; partial updates are merged one after the other.
    """
    order = np.argsort(record, kind="stable")
    of = record[order]
    if len(order) > 1 and bool((np.diff(order) < 0).any()):
        versions = versions.take(pa.array(order))
    while True:
        starts = np.flatnonzero(np.concatenate(([True], np.diff(of) != 0))) if len(of) else np.zeros(0, dtype=np.int64)
        if len(starts) == len(of):
            return versions
        place = np.arange(len(of)) - np.repeat(starts, np.diff(np.append(starts, len(of))))
        second = place == 1 if versions.assigned else place % 2 == 1
        newer = np.flatnonzero(second)
        kept = np.flatnonzero(~(second | np.append(second[1:], False)))
        merged = merge_pairs(versions.take(pa.array(newer - 1)), versions.take(pa.array(newer)), merger)
        # Both lists of positions ascend, so sorting their concatenation restores the order of the versions.
        back = np.argsort(np.concatenate([newer, kept]), kind="stable")
        of = of[np.concatenate([newer, kept])][back]
        versions = stacked(merged, versions.take(pa.array(kept))).take(pa.array(back))


def _checked(merged: object, newer: Records, merger: RecordMerger) -> Records:
    if not isinstance(merged, Records):
        raise MergerError(f"{_name(merger)} returned {type(merged).__name__}; it must return pyhudi.Records")
    problem = None
    if len(merged) != len(newer) or len(merged.is_delete) != len(newer):
        problem = f"{len(merged)} records for {len(newer)} pairs"
    elif merged.rows.schema.names != newer.rows.schema.names:
        problem = f"the columns {merged.rows.schema.names} instead of {newer.rows.schema.names}"
    elif merged.is_delete.null_count:
        problem = "nulls in is_delete"
    elif len(merged.ordering) != len(newer.ordering):
        problem = f"{len(merged.ordering)} ordering columns instead of {len(newer.ordering)}"
    if problem:
        raise MergerError(f"{_name(merger)} returned {problem}")
    if not merged.rows.schema.equals(newer.rows.schema):
        try:
            merged = merged.with_rows(merged.rows.cast(newer.rows.schema))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise MergerError(f"{_name(merger)} returned columns of other types: {error}") from error
    return merged


def _name(merger: RecordMerger) -> str:
    return f"the merger {type(merger).__name__} ({merger.strategy_id})"
