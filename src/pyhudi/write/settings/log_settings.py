"""Settings of the log files of a write: their format and the file slices that get them, and of CDC logs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.enums import CdcMode
from pyhudi.format.file_names import file_names_of, parse_names
from pyhudi.format.log import LogOptions, LogSchema
from pyhudi.table.view.file_group_keys import group_keys, in_groups
from pyhudi.write.planning.workload_profile import WorkloadProfile

LOG_SLICES_SCHEMA = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("log_names", pa.list_(pa.string())),
    ]
)
"""File slices that get log files: the base instant of the slice, and the names of its existing log files."""


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Settings of a write's log files.

    ``positions``: blocks store the positions of their records in the base file. ``partial``: records have only these
    columns and keep the values of all others. ``slices`` (LOG_SLICES_SCHEMA) are the file slices that get log files;
    rows of other file groups are written to base files. ``cdc``: the table has CDC logs, so the commit lists the
    base file and the other log files of each slice, which change data queries need. ``opens_groups``: rows of file
    groups without any file are written to log files, too, as concurrent writers may create the same group.
    """

    schema: LogSchema
    options: LogOptions = field(default_factory=LogOptions)
    positions: bool = True
    partial: pa.Schema | None = None
    cdc: bool = False
    slices: pa.Table = field(default_factory=LOG_SLICES_SCHEMA.empty_table)
    opens_groups: bool = False

    @property
    def named_by_slice(self) -> bool:
        """True if names of log files contain the instant of their slice (version 6) rather than that of the write."""
        return self.schema.table_version < 8

    @property
    def names_slice(self) -> bool:
        """True if the commit lists all files of the slices that get log files."""
        return self.named_by_slice or self.cdc


@dataclass(frozen=True, slots=True)
class CdcSettings:
    """Settings of a write's CDC logs: mode of supplemental logging, schema of their blocks
    (`pyhudi.format.log.cdc_schema.cdc_schema`), and size limits."""

    mode: CdcMode
    schema: LogSchema
    options: LogOptions = field(default_factory=LogOptions)


def appended_groups(workload: WorkloadProfile) -> pa.Table:
    """Return the file groups (COUNTS_SCHEMA) whose updates and deletes are written to log files: those without new
    records.

    New records are written to base files, because an index that reads only base files would not find them otherwise. A
    base file that receives some is rewritten together with its updates, as in Apache Hudi.
    """
    updates = workload.updates
    return updates.filter(pc.invert(in_groups(updates, workload.insert_targets)))


def log_slices(
    groups: pa.Table, slices: pa.Table, pending: pa.Table, *, named_by_slice: bool, with_names: bool = False
) -> pa.Table:
    """Return the slices (LOG_SLICES_SCHEMA) to which log files of file groups belong.

    ``slices`` has SLICE_SCHEMA; ``pending`` (partition, file_id, instant) are the slices that pending compactions have
    opened. They affect names of log files only in tables of version 6 (``named_by_slice``): there, new files are named
    after the newest log files of their slice, which may be later than it after a downgrade, because names determine the
    order of log files. ``with_names``: include the existing log files of slices in later versions, too.
    """
    at = pc.index_in(group_keys(groups), value_set=group_keys(slices))
    matched = slices.take(at)
    instants = matched["base_instant"].combine_chunks()
    if not named_by_slice:
        logs = matched["log_paths"].combine_chunks()
        return _table(matched, instants, _names_of(logs, None) if with_names else pa.nulls(len(logs), logs.type))
    opened = pending.group_by(["partition", "file_id"]).aggregate([("instant", "max")])
    later = opened["instant_max"].combine_chunks().take(pc.index_in(group_keys(matched), value_set=group_keys(opened)))
    paths = matched["log_paths"].combine_chunks()
    instants = pc.max_element_wise(instants, later, _newest_instants(paths))
    return _table(matched, instants, _names_of(paths, instants))


def _newest_instants(paths: pa.ListArray) -> pa.Array:
    """Return the greatest instant in the names of the log files in each list of paths; null: there are none."""
    columns = [pc.list_parent_indices(paths), parse_names(file_names_of(paths.flatten()))["instant"].combine_chunks()]
    newest = pa.table(columns, names=["slice", "instant"]).group_by("slice").aggregate([("instant", "max")])
    at = pc.index_in(pa.array(np.arange(len(paths))), value_set=newest["slice"].combine_chunks().cast(pa.int64()))
    return newest["instant_max"].combine_chunks().take(at)


def _names_of(paths: pa.ListArray, instants: pa.Array | None) -> pa.ListArray:
    """Return the names of the log files in each list of paths, or of those with the instant."""
    parents = pc.list_parent_indices(paths)
    names = file_names_of(paths.flatten())
    if instants is None:
        selected = pa.repeat(pa.scalar(True), len(names))
    else:
        selected = pc.fill_null(pc.equal(parse_names(names)["instant"].combine_chunks(), instants.take(parents)), False)
    counts = np.bincount(parents.filter(selected).to_numpy(), minlength=len(paths))
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, names.filter(selected))


def _table(slices: pa.Table, instants: pa.Array, names: pa.Array) -> pa.Table:
    columns = [slices["partition"], slices["file_id"], instants, names]
    return pa.Table.from_arrays(columns, schema=LOG_SLICES_SCHEMA).combine_chunks()
