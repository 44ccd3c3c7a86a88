"""Typed values of the properties of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import CdcMode, FileFormat, MergeMode, TableType, TimelineTimezone
from pyhudi.config.option import split_names
from pyhudi.errors import CorruptTableError, InvalidOptionError, UnsupportedTableError
from pyhudi.table.config.key_generator_type import (
    KeyGenType,
    PartitionField,
    PartitionKind,
    infer_keygen,
    parse_keygen,
    parse_partition_fields,
)
from pyhudi.table.config.merge_settings import MergeSettings, with_delete_marker
from pyhudi.table.config.resolved_merge_settings import resolve_merge_settings
from pyhudi.timeline.timeline_layout import Layout

E = TypeVar("E", bound=StrEnum)
_KEY_GENERATORS = (property_keys.KEY_GENERATOR_TYPE, property_keys.KEY_GENERATOR_CLASS)


@dataclass(frozen=True, eq=True)
class TableProperties:
    """Content of ``hoodie.properties``. Absent keys have the defaults of Apache Hudi."""

    properties: Mapping[str, str]

    # --- identity --------------------------------------------------------------------------------------------------

    @cached_property
    def name(self) -> str:
        return self.properties[property_keys.NAME]

    @cached_property
    def database(self) -> str:
        """Database; ``""`` if the table belongs to none."""
        return self.properties.get(property_keys.DATABASE_NAME, "")

    @cached_property
    def table_type(self) -> TableType:
        return self._choice(property_keys.TYPE, TableType.COPY_ON_WRITE)

    @cached_property
    def version(self) -> int:
        """Table version; a table without one is older than the oldest supported version."""
        return self.integer(property_keys.VERSION, 0)

    @cached_property
    def layout(self) -> Layout:
        """Location of the timeline and naming of its files."""
        return Layout.from_properties(self.properties)

    @cached_property
    def timezone(self) -> TimelineTimezone:
        return self._choice(property_keys.TIMELINE_TIMEZONE, TimelineTimezone.LOCAL)

    @cached_property
    def base_file_format(self) -> FileFormat:
        return self._choice(property_keys.BASE_FILE_FORMAT, FileFormat.PARQUET)

    @cached_property
    def is_metadata_table(self) -> bool:
        """True for a metadata table (``.hoodie/metadata`` of a table)."""
        return self.keygen is KeyGenType.HOODIE_TABLE_METADATA or (
            self.base_file_format is FileFormat.HFILE and self.name.endswith("_metadata")
        )

    # --- keys and partitions ---------------------------------------------------------------------------------------

    @cached_property
    def record_keys(self) -> tuple[str, ...]:
        """Columns of the record key; empty if keys are generated."""
        return split_names(self.properties.get(property_keys.RECORDKEY_FIELDS, ""))

    @cached_property
    def keys_are_of_writer(self) -> bool:
        """True if neither columns of the record key nor a key generator are recorded: whoever writes rows passes their
        keys and partition paths. Tables of generated keys have a generator."""
        return not self.record_keys and not any(self.properties.get(key) for key in _KEY_GENERATORS)

    @cached_property
    def columns_of_key(self) -> tuple[str, ...]:
        """Columns that have the same values in all versions of a record: those of the record key, unless a generator of
        the user makes it of them, which may give the same key for several values."""
        return () if self.keygen is KeyGenType.USER_PROVIDED else self.record_keys

    @cached_property
    def partition_spec(self) -> str:
        """Partition columns as stored in the property, including types."""
        return self.properties.get(property_keys.PARTITION_FIELDS, "")

    @cached_property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """Partition columns with their kind. The column of the timestamp generator is a timestamp. The custom generator
        of version 6 does not store kinds: they are taken from the options of the writer (simple here)."""
        try:
            fields = parse_partition_fields(self.partition_spec)
        except InvalidOptionError as error:
            raise UnsupportedTableError(
                f"hoodie.properties contains hoodie.table.partition.fields={self.partition_spec}; allowed: "
                f"{error.allowed}"
            ) from None
        if self.keygen is KeyGenType.TIMESTAMP:
            return tuple(PartitionField(field.name, PartitionKind.TIMESTAMP) for field in fields)
        return fields

    @cached_property
    def is_partitioned(self) -> bool:
        return bool(self.partition_fields)

    @cached_property
    def keygen(self) -> KeyGenType:
        """Key generator: by type, else by class, else by the key and partition columns."""
        for key in _KEY_GENERATORS:
            named = self.properties.get(key)
            if named:
                try:
                    return parse_keygen(named)
                except InvalidOptionError as error:
                    raise UnsupportedTableError(
                        f"hoodie.properties contains {key}={named}; allowed: {error.allowed}"
                    ) from None
        return infer_keygen(self.record_keys, self.partition_spec)

    @cached_property
    def keygen_class(self) -> str | None:
        """Java class of the key generator, if recorded; never loaded."""
        return self.properties.get(property_keys.KEY_GENERATOR_CLASS) or None

    @cached_property
    def hive_style(self) -> bool:
        return self.flag(property_keys.HIVE_STYLE_PARTITIONING)

    @cached_property
    def url_encode(self) -> bool:
        return self.flag(property_keys.URL_ENCODE_PARTITIONING)

    @cached_property
    def slash_dates(self) -> bool:
        return self.flag(property_keys.SLASH_SEPARATED_DATE_PARTITIONING)

    @cached_property
    def drop_partition_columns(self) -> bool:
        """True if partition columns are omitted from the files."""
        return self.flag(property_keys.DROP_PARTITION_COLUMNS)

    @cached_property
    def populate_meta_fields(self) -> bool:
        """True if files hold the five meta columns; false: virtual keys."""
        return self.flag(property_keys.POPULATE_META_FIELDS, default=True)

    @cached_property
    def partition_metadata_format(self) -> FileFormat | None:
        """Format of partition metadata files; None: text."""
        return self.base_file_format if self.flag(property_keys.PARTITION_METAFILE_USE_BASE_FORMAT) else None

    # --- merging ---------------------------------------------------------------------------------------------------

    @cached_property
    def ordering_fields(self) -> tuple[str, ...]:
        """Ordering columns in order of precedence."""
        text = self.properties.get(property_keys.ORDERING_FIELDS) or self.properties.get(property_keys.PRECOMBINE_FIELD)
        return split_names(text or "")

    @cached_property
    def merging(self) -> MergeSettings:
        """Merge settings, in the terms of version 9."""
        return self.merging_for(None)

    def merging_for(self, write_payload: str | None, write_ordering: tuple[str, ...] = ()) -> MergeSettings:
        """Return the merge settings with the payload class and the ordering columns of a write, because tables of
        version 6 need not store theirs."""
        ordering = self.ordering_fields or (write_ordering if self.version < 8 else ())
        return resolve_merge_settings(self.properties, self.version, ordering, write_payload)

    def merging_of_write(self, opts: Options) -> MergeSettings:
        """Return the merge settings of a write with these options: its payload class, ordering columns and delete
        marker count where the table stores none.

        Raises:
            ConfigError: A delete field is set without its marker, or the marker without the field.
        """
        payload, ordering = opts.get_typed(options.PAYLOAD_CLASS), opts.get_typed(options.ORDERING_FIELDS)
        return with_delete_marker(self.merging_for(payload, ordering), opts)

    def deciding_columns(self, opts: Options) -> dict[str, tuple[str, ...]]:
        """Return the columns that decide between versions of a record, by their role; the delete marker may be that of
        a write's options."""
        columns = with_delete_marker(self.merging, opts).deciding_columns
        return {**columns, "ordering": (*self.ordering_fields, *columns["ordering"])}

    def columns_by_role(self, opts: Options) -> dict[str, tuple[str, ...]]:
        """Return the columns that make record keys and partition paths, and those that decide between versions of a
        record, by their role."""
        partition = tuple(field.name for field in self.partition_fields)
        return {"record key": self.record_keys, "partition path": partition, **self.deciding_columns(opts)}

    @property
    def merge_mode(self) -> MergeMode:
        return self.merging.mode

    @property
    def has_stored_values_only(self) -> bool:
        """True if every value of a merged row is stored in a file of its slice, so that statistics of files apply to
        rows. In a merge-on-read table, a custom merger computes other values when log files are read."""
        return self.table_type is not TableType.MERGE_ON_READ or not self.merging.computes_values

    # --- other properties ------------------------------------------------------------------------------------------

    @cached_property
    def metadata_partitions(self) -> tuple[str, ...]:
        """Complete partitions of the metadata table; if empty, there is no metadata table to read."""
        return split_names(self.properties.get(property_keys.METADATA_PARTITIONS, ""))

    @cached_property
    def metadata_partitions_inflight(self) -> tuple[str, ...]:
        return split_names(self.properties.get(property_keys.METADATA_PARTITIONS_INFLIGHT, ""))

    @property
    def metadata_partitions_kept(self) -> tuple[str, ...]:
        """Partitions of the metadata table that writes update: complete ones, and those being built."""
        return tuple(dict.fromkeys((*self.metadata_partitions, *self.metadata_partitions_inflight)))

    @cached_property
    def index_defs_path(self) -> str | None:
        """Path of the index definitions relative to the table's root."""
        return self.properties.get(property_keys.INDEX_DEFINITIONS_PATH) or None

    @cached_property
    def cdc_enabled(self) -> bool:
        return self.flag(property_keys.CDC_ENABLED)

    @cached_property
    def cdc_mode(self) -> CdcMode:
        return self._choice(property_keys.CDC_SUPPLEMENTAL_LOGGING_MODE, CdcMode.DATA_BEFORE_AFTER)

    @cached_property
    def create_schema(self) -> str | None:
        """Avro schema with which SQL created the table, without meta columns."""
        return self.properties.get(property_keys.CREATE_SCHEMA) or None

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _choice(self, key: str, default: E) -> E:
        text = self.properties.get(key)
        if not text:
            return default
        kind = type(default)
        try:
            return kind(text.upper())
        except ValueError:
            allowed = ", ".join(kind)
            raise UnsupportedTableError(
                f"hoodie.properties contains {key}={text}; this release supports {allowed}"
            ) from None

    def integer(self, key: str, default: int) -> int:
        """Return a property as an integer. Raises CorruptTableError for other values."""
        text = self.properties.get(key, str(default))
        try:
            return int(text)
        except ValueError:
            raise CorruptTableError(f"hoodie.properties contains {key}={text!r}, which is not an integer") from None

    def flag(self, key: str, *, default: bool = False) -> bool:
        """Return a property as a boolean; every value except "true" is false, as in Java."""
        return self.properties.get(key, str(default)).strip().lower() == "true"

    def __hash__(self) -> int:
        return hash(frozenset(self.properties.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, version {self.version}, {self.table_type})"
