"""Reader of the metadata table: the records of each partition, with base files and log files merged.

Data are read on demand, and only the blocks that may contain the requested keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import FormatError, HudiError, MetadataTableAheadError, MetadataTableError
from pyhudi.format.avro.columnar_decoder import Projection
from pyhudi.format.hfile.key_values import ENTRY_SCHEMA
from pyhudi.metadata.file_groups.hfile_sources import DeleteSource, HFileSource, MetadataSlice, slice_sources
from pyhudi.metadata.indexes.secondary_index_definition import is_secondary
from pyhudi.metadata.metadata_layout import COLUMN_STATS, FILES, PARTITION_STATS
from pyhudi.metadata.reader.file_lists import listed_files
from pyhudi.metadata.reader.inflight_partitions import inflight_partitions
from pyhudi.metadata.reader.metadata_slices import current_slices, metadata_block_view
from pyhudi.metadata.reader.metadata_timeline import MetadataTimeline, open_timeline
from pyhudi.metadata.reader.record_cache import cached_records
from pyhudi.metadata.records import file_group_hash, metadata_keys
from pyhudi.metadata.records.combine_records import Version, combine_versions, is_delete_mask
from pyhudi.metadata.records.metadata_record import FILES_PAYLOAD, PAYLOADS, decode, decoded_schema, frozen, with_schema
from pyhudi.storage import Storage
from pyhudi.storage.lazy_property import lazy_property
from pyhudi.storage.table_paths import METADATA_FOLDER
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.active_timeline import ActiveTimeline

KEY = "key"
MAX_READ_ATTEMPTS = 3
"""Number of attempts at loading a table that is written concurrently, before it is not used."""
_KEPT_KEYS = 64
"""Number of keys up to which lookup results are kept for the next plan."""
_SCANNED_BYTES = 64 * 1024
"""Bytes of files up to which all lists of files are read, and kept for the next lookup, instead of some."""
Payloads = Iterable[str] | Mapping[str, Projection]
_Read = Callable[[HFileSource], pa.Table]

_GROUP = re.compile(r"(?P<prefix>.+?)-(?P<number>\d{4,})(?:-\d+)?", re.ASCII)
"""Name of a file group: prefix of its partition, and number."""


class MetadataTable:
    """Snapshot of the metadata table of a table.

    All tables of records have the columns ``key`` (text), ``type`` and the requested payloads, with one row per key in
    undefined order.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: MetadataTimeline,
        inflight_partitions: Collection[str],
    ) -> None:
        self.storage, self.config, self.timeline = storage, config, timeline
        self._inflight = inflight_partitions
        self._groups: dict[str, pa.Table] = {}

    @classmethod
    def open(cls, table: TableSnapshot) -> MetadataTable:
        """Open the metadata table of a table.

        Raises:
            MetadataTableError: The metadata table cannot be used. The message has the reason.
        """
        return cls(table.storage, table.config, open_timeline(table), inflight_partitions(table.active))

    @classmethod
    def open_now(cls, storage: Storage, config: TableConfig) -> MetadataTable:
        """Open the metadata table of the current state of a table, with retries during concurrent writes.

        Raises:
            MetadataTableError: The metadata table cannot be used. The message has the reason.
        """
        for _ in range(MAX_READ_ATTEMPTS - 1):
            try:
                return cls.open(TableSnapshot(storage, config, ActiveTimeline.load(storage, config.layout)))
            except MetadataTableAheadError:
                continue
        return cls.open(TableSnapshot(storage, config, ActiveTimeline.load(storage, config.layout)))

    @property
    def partitions(self) -> tuple[str, ...]:
        """Complete partitions of the metadata table."""
        return tuple(name for name in self.config.metadata_partitions if name not in self._inflight)

    def groups(self, partition: str) -> pa.Table:
        """Return the file slices of a partition, one per file group, ordered by number
        (`pyhudi.metadata.reader.metadata_slices.current_slices`).

        Raises:
            MetadataTableError: The partition is not declared, or its files are missing or incomplete.
        """
        if partition not in self._groups:
            self._groups[partition] = self._load_groups(partition)
        return self._groups[partition]

    def file_slices(self, partition: str) -> list[MetadataSlice]:
        """Return `groups` as objects."""
        return MetadataSlice.from_rows(partition, self.groups(partition))

    def scan(self, partition: str, payloads: Payloads = PAYLOADS) -> pa.Table:
        """Return all records of a partition."""
        groups = self.file_slices(partition)
        payloads = payloads if isinstance(payloads, Mapping) else tuple(payloads)
        if partition != FILES:
            return self.scan_groups(groups, payloads)
        return self._cached_records(groups, ("scan",), payloads, lambda: self.scan_groups(groups, payloads))

    def scan_groups(self, groups: list[MetadataSlice], payloads: Payloads = PAYLOADS) -> pa.Table:
        """Return all records of file groups."""
        return self._read(groups, lambda file: pa.Table.from_batches(file.reader.batches(), ENTRY_SCHEMA), payloads)

    def record_schema(self) -> pa.Schema:
        """Return the schema of tables of records with all payloads."""
        return self._nothing(PAYLOADS).schema

    @lazy_property
    def partition_paths(self) -> list[str]:
        """The paths of the table's partitions, sorted.

        Raises:
            MetadataTableError: The metadata table cannot be read, or has no list of partitions.
        """
        record = self.lookup(FILES, pa.array([metadata_keys.ALL_PARTITIONS]), [FILES_PAYLOAD])
        names = metadata_keys.paths_of_keys(listed_files(record)["name"]).to_pylist() if record.num_rows else []
        return sorted(names)

    def lookup(
        self, partition: str, keys: pa.Array | pa.ChunkedArray, payloads: Payloads = PAYLOADS, *, prefix: str = ""
    ) -> pa.Table:
        """Return the records with any of these keys (text); missing keys are omitted.

        ``prefix`` selects file groups whose ids start with it.
        """
        unique_keys = pc.unique(keys).drop_null()
        groups = [g for g in self.file_slices(partition) if g.file_id.startswith(prefix)]
        if not groups or not len(unique_keys):
            return self._nothing(payloads)
        payloads = payloads if isinstance(payloads, Mapping) else tuple(payloads)
        if partition == FILES and sum(group.num_bytes for group in groups) <= _SCANNED_BYTES:
            records = self.scan(FILES, payloads)
            return records.filter(pc.is_in(records[KEY], value_set=unique_keys))

        def look_up() -> pa.Table:
            return self._lookup(groups, unique_keys, self._numbers(partition, unique_keys, len(groups)), payloads)

        is_cached = partition in (FILES, PARTITION_STATS) and len(unique_keys) <= _KEPT_KEYS
        return (
            self._cached_records(groups, ("keys", *unique_keys.to_pylist()), payloads, look_up)
            if is_cached
            else look_up()
        )

    def _cached_records(
        self, groups: list[MetadataSlice], request: tuple[str, ...], payloads: Payloads, look_up: Callable[[], pa.Table]
    ) -> pa.Table:
        if self.config.version < 8:  # which blocks of files count depends on more than the files
            return look_up()
        return cached_records(self.storage.root, self.config.version, groups, (request, frozen(payloads)), look_up)

    def prefixes(self, partition: str, prefixes: pa.Array | Iterable[str], payloads: Payloads = PAYLOADS) -> pa.Table:
        """Return the records whose keys start with any of these texts, in all file groups of the partition."""
        all_groups = self.file_slices(partition)
        texts = prefixes.to_pylist() if isinstance(prefixes, pa.Array) else list(prefixes)
        payloads = payloads if isinstance(payloads, Mapping) else tuple(payloads)

        def look_up() -> pa.Table:
            return self._with_prefixes(all_groups, texts, payloads)

        if partition != COLUMN_STATS or len(texts) > _KEPT_KEYS:
            return look_up()
        return self._cached_records(all_groups, ("prefixes", *texts), payloads, look_up)

    def secondary_lookup(self, partition: str, prefixes: pa.Array, payloads: Payloads) -> pa.Table:
        """Return the records of a secondary index whose keys start with these texts: whole values, each with its
        ``$``."""
        groups = self.file_slices(partition)
        if self.config.version < 9 or len(groups) == 1:
            return self.prefixes(partition, prefixes, payloads)
        numbers = file_group_hash.file_group_index_of(prefixes, len(groups))
        tables = [self._nothing(payloads)]
        for number in np.unique(numbers).tolist():
            group_prefixes = prefixes.filter(pa.array(numbers == number)).to_pylist()
            tables.append(self._with_prefixes([groups[number]], group_prefixes, payloads))
        return pa.concat_tables(tables)

    def _load_groups(self, partition: str) -> pa.Table:
        if partition in self._inflight:
            raise MetadataTableError(
                f"the metadata partition '{partition}' is being built, or its build was interrupted"
            )
        if partition not in self.partitions:
            raise MetadataTableError(f"the table has no metadata partition '{partition}'")
        effective, active = self.timeline.effective, self.timeline.active
        slices = current_slices(active, effective, partition, self.config.version)
        folder = self.storage.uri(f"{METADATA_FOLDER}/{partition}")
        if not slices.num_rows:
            raise MetadataTableError(f"{folder} has no committed files, although it is declared")
        _check_numbers(slices["file_id"].to_pylist(), folder)
        return slices

    def _numbers(self, partition: str, keys: pa.Array, groups: int) -> np.ndarray[Any, Any]:
        if is_secondary(partition):
            return file_group_hash.secondary_file_group_index_of(keys, groups, self.config.version)
        return file_group_hash.file_group_index_of(keys, groups)

    def _lookup(
        self, groups: list[MetadataSlice], keys: pa.Array, numbers: np.ndarray[Any, Any], payloads: Payloads
    ) -> pa.Table:
        tables = [self._nothing(payloads)]
        for number in np.unique(numbers).tolist():
            group_keys = keys.filter(pa.array(numbers == number))

            def read(file: HFileSource, group_keys: pa.Array = group_keys) -> pa.Table:
                return file.reader.lookup(group_keys)

            def among(found_keys: pa.Array, group_keys: pa.Array = group_keys) -> pa.Array:
                return pc.is_in(found_keys, value_set=group_keys)

            tables.append(self._read([groups[number]], read, payloads, among))
        return pa.concat_tables(tables)

    def _with_prefixes(self, groups: list[MetadataSlice], prefixes: Iterable[str], payloads: Payloads) -> pa.Table:
        unique_prefixes = sorted(set(prefixes))
        encoded = [text.encode() for text in unique_prefixes]
        lengths: dict[int, list[str]] = {}
        for text in unique_prefixes:
            lengths.setdefault(len(text), []).append(text)

        def begins(keys: pa.Array) -> pa.Array:
            matches = pa.repeat(pa.scalar(False), len(keys))
            for length, texts in lengths.items():
                starts = pc.utf8_slice_codeunits(keys, 0, length)
                matches = pc.or_(matches, pc.is_in(starts, value_set=pa.array(texts, pa.string())))
            return matches

        return self._read(groups, lambda file: file.reader.prefixes(encoded), payloads, begins)

    def _read(
        self,
        groups: list[MetadataSlice],
        read: _Read,
        payloads: Payloads,
        keep: Callable[[pa.Array], pa.Array] | None = None,
    ) -> pa.Table:
        """Return the records of file groups. ``read`` returns entries of a file, ``keep`` selects the relevant
        deletes."""
        tables = [self._nothing(payloads)]
        for group in groups:
            try:
                tables.append(self._merged(group, read, payloads, keep))
            except MetadataTableError:
                raise
            except (HudiError, ValueError) as error:
                is_index = group.partition != FILES
                cure = "; drop the index and build it again" if is_index and isinstance(error, FormatError) else ""
                raise MetadataTableError(
                    f"cannot read file group {group.file_id} of {METADATA_FOLDER}/{group.partition}: {error}{cure}"
                ) from error
        return pa.concat_tables(tables)

    def _merged(
        self,
        group: MetadataSlice,
        read: _Read,
        payloads: Payloads,
        keep: Callable[[pa.Array], pa.Array] | None,
    ) -> pa.Table:
        versions = []
        view = metadata_block_view(self.timeline.effective, self.config.version)
        for source in slice_sources(self.storage, group, view):
            if isinstance(source, DeleteSource):
                deletes = source.keys if keep is None else source.keys.filter(keep(source.keys))
                versions.append(Version(deletes=deletes))
                continue
            entries = read(source)
            if entries.num_rows:
                versions.append(Version(metadata_keys.key_texts(entries["key"]), entries["value"], source.schema))
        schema = decoded_schema(self.config.version, payloads)
        tables = [self._nothing(payloads)]
        for part in combine_versions(versions, self.config.version):
            table = with_schema(decode(part.values, part.schema, payloads), schema).add_column(0, KEY, part.keys)
            deleted = is_delete_mask(table)
            tables.append(table.filter(pc.invert(deleted)) if pc.any(deleted).as_py() else table)
        return pa.concat_tables(tables)

    def _nothing(self, payloads: Payloads) -> pa.Table:
        return _keyed(decoded_schema(self.config.version, payloads)).empty_table()


def _keyed(schema: pa.Schema) -> pa.Schema:
    return schema.insert(0, pa.field(KEY, pa.string()))


def _check_numbers(file_ids: list[str], folder: str) -> None:
    """Check that file groups are numbered from 0 without gaps; otherwise keys would be looked up in the wrong group."""
    counts: dict[str, list[int]] = {}
    for file_id in file_ids:
        # ``files-0000-0``; until version 5 without the last number
        match = _GROUP.fullmatch(file_id)
        if match is None:
            raise FormatError(f"{folder} has a file group with the invalid name {file_id!r}")
        counts.setdefault(match["prefix"], []).append(int(match["number"]))
    for prefix, numbers in counts.items():
        if sorted(numbers) != list(range(len(numbers))):
            raise MetadataTableError(f"{folder} has only the file groups {sorted(numbers)} of {prefix}")
