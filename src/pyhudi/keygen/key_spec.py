"""Specification of record keys and partition paths, executed by an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyhudi.config import property_keys
from pyhudi.config.option_registry import spellings
from pyhudi.config.options import (
    COMPLEX_KEYGEN_NEW_ENCODING,
    INDEX_TYPE,
    KEYGEN_CONSISTENT_LOGICAL_TIMESTAMP,
    PARTITIONPATH_FIELD,
    RECORDKEY_FIELD,
)
from pyhudi.errors import ConfigError, InvalidOptionError, UnsupportedTableError
from pyhudi.keygen.custom_key_generator import registered_generator
from pyhudi.keygen.timestamp_settings import TimestampSpec
from pyhudi.storage import Storage, is_remote
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, PartitionKind
from pyhudi.table.config.table_config import TableConfig

NULL_KEY_PART = "__null__"
EMPTY_KEY_PART = "__empty__"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

ENCODED_CHARS = "".join(map(chr, range(0x20))) + "\x7f\"#%'*/:=?[\\]^{"
"""Characters that URL-encoded partition paths represent as ``%`` and two upper-case hex digits."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Specification of the record key and the partition path of a row.

    ``record_fields``: key fields in order, with dotted paths into structs; empty: keys are generated per row.
    ``named_parts``: the key is ``f1:v1,f2:v2`` instead of the text of a single value. ``partition_fields``: path
    segments in order; empty: not partitioned. ``slash_dates``: dashes in the (single, simple) partition value are
    replaced by slashes. ``consistent_timestamps``: timestamps are formatted like ``2024-01-02 03:04:05.678`` in the
    JVM's time zone, truncated to milliseconds, instead of epoch microseconds. ``sql_timestamps``: so are those in
    partition paths, truncated to seconds, with ``%3A`` for colons. ``key_class``, ``path_class``: class name of the
    registered generator that makes record keys (partition paths) of the fields, instead of their texts.
    ``control_characters``: folders may have control characters in their names.
    """

    keygen: KeyGenType
    record_fields: tuple[str, ...]
    named_parts: bool
    partition_fields: tuple[PartitionField, ...]
    hive_style: bool = False
    url_encode: bool = False
    slash_dates: bool = False
    consistent_timestamps: bool = False
    sql_timestamps: bool = False
    timestamp: TimestampSpec | None = None
    key_class: str | None = None
    path_class: str | None = None
    control_characters: bool = True

    def at(self, storage: Storage) -> KeySpec:
        """Return the specification for a table at a storage: object stores are given no names with control
        characters."""
        return replace(self, control_characters=not is_remote(storage))

    @property
    def invalid_folder(self) -> str:
        """Regular expression, of RE2 and of Java, of partition paths that are no folders of a table.

        Empty levels, "." and ".." resolve to other folders, ".hoodie" is reserved, and Hadoop takes a colon in the
        first level for the end of a scheme, so that Apache Hudi cannot read the table.
        """
        folder = r"(^|/)\.{0,2}(/|$)|^\.hoodie(/|$)|^[^/]*:"
        return folder if self.control_characters else rf"{folder}|[\x00-\x1F\x7F]"

    @property
    def auto_keys(self) -> bool:
        """True if keys are generated rather than read from columns."""
        return not self.record_fields

    @property
    def unset_key_message(self) -> str:
        """Error message for a row without a key."""
        if self.key_class is not None:
            return f"the record key that {self.key_class} makes is null or empty"
        names = ", ".join(repr(name) for name in self.record_fields)
        if len(self.record_fields) == 1:
            return f"the record key field {names} is null or empty"
        return f"the record key fields {names} are all null or empty"

    @classmethod
    def from_config(cls, config: TableConfig, options: Mapping[str, str] | None = None) -> KeySpec:
        """Return the specification for a table's configuration and the options of a write.

        The properties of the table take precedence. Options add settings that tables do not store (timestamp parameters
        of a CUSTOM generator, consistent timestamps, the encoding of one-field complex keys below version 9). Raises
        ConfigError, or UnsupportedTableError for a generator class of the user that is not registered in Python.
        """
        options = options or {}
        keygen = config.keygen
        key_class, path_class = _custom_classes(config) if keygen is KeyGenType.USER_PROVIDED else (None, None)
        if keygen is KeyGenType.HOODIE_TABLE_METADATA:
            raise UnsupportedTableError("a metadata table cannot be written directly; write to its table instead")
        records = config.record_keys
        partitions = _partitions(keygen, config.partition_fields)
        if keygen in (KeyGenType.SIMPLE, KeyGenType.TIMESTAMP):
            _check_single_fields(keygen, records, partitions)
        # Apache Hudi creates such tables without recording it in their properties; then the option of the writer
        # determines it.
        slash = config.slash_dates or _flag(property_keys.SLASH_SEPARATED_DATE_PARTITIONING, options, config.properties)
        slash = slash and len(partitions) == 1 and partitions[0].kind is PartitionKind.SIMPLE
        timestamp = None
        if any(field.kind is PartitionKind.TIMESTAMP for field in partitions):
            timestamp = TimestampSpec.from_options(lambda key: _lookup(key, options, config.properties))
        return cls(
            keygen=keygen,
            record_fields=records,
            named_parts=_named_parts(keygen, records, config.version, options, config.properties),
            partition_fields=partitions,
            hive_style=config.hive_style,
            url_encode=config.url_encode,
            slash_dates=slash,
            consistent_timestamps=_flag(KEYGEN_CONSISTENT_LOGICAL_TIMESTAMP.key, options, config.properties),
            timestamp=timestamp,
            key_class=key_class,
            path_class=path_class,
        )

    def may_name_parts(self, keys: Iterable[str]) -> bool:
        """Return True if all these keys of one field begin with its name, as in the form ``id:a``.

        So may those in the form ``a``: values of a field ``urn`` are likely to begin with ``urn:``.
        """
        return all(key.startswith(f"{self.record_fields[0]}:") for key in keys)

    def matching(self, key: str, value: str) -> KeySpec:
        """Return the specification with the encoding of one-field complex keys that a record of the table has.

        Tables have either ``id:a`` or ``a``, depending on the release and options of their first writer; the other form
        would duplicate records.

        Args:
            key: Record key of the record.
            value: Text of its key field.
        """
        return replace(self, named_parts=key == f"{self.record_fields[0]}:{value}")


def check_generator_registered(config: TableConfig) -> None:
    """Check that the key generator of a new table can be used: one of the user has to be registered.

    Raises:
        UnsupportedTableError: It is not registered.
        ConfigError: The table has no columns of which it could make keys or paths.
    """
    if config.keygen is KeyGenType.USER_PROVIDED:
        _custom_classes(config)


def check_generator_usable(spec: KeySpec, config: TableConfig, *, bucketed: bool) -> None:
    """Refuse a generator of the user where keys or paths have to be known without Spark.

    Raises:
        UnsupportedTableError: The message has the property or option, and what to use.
    """
    if spec.key_class is not None and not config.populate_meta_fields:
        raise UnsupportedTableError(
            f"{spec.key_class} makes the record keys, which {property_keys.POPULATE_META_FIELDS}=false does not store; "
            "create the table with meta fields"
        )
    if spec.key_class is not None and bucketed:
        raise UnsupportedTableError(
            f"{spec.key_class} makes the record keys, but {INDEX_TYPE.key}=BUCKET distributes rows by the columns of "
            "keys; use another index"
        )
    if spec.path_class is not None and config.drop_partition_columns:
        raise UnsupportedTableError(
            f"{spec.path_class} makes the partition paths, from which {property_keys.DROP_PARTITION_COLUMNS}=true "
            "would read the columns; create the table without it"
        )


def _custom_classes(config: TableConfig) -> tuple[str | None, str | None]:
    """Return the class name for the record keys and for the partition paths that a registered generator makes.

    Raises:
        UnsupportedTableError: The generator is not registered.
        ConfigError: The table has no columns of which it could make them.
    """
    name = config.properties.get(property_keys.KEY_GENERATOR_CLASS)
    generator = registered_generator(name)
    for makes, what, fields, option in (
        (generator.makes_record_keys, "record keys", config.record_keys, RECORDKEY_FIELD),
        (generator.makes_partition_paths, "partition paths", config.partition_fields, PARTITIONPATH_FIELD),
    ):
        if makes and not fields:
            raise ConfigError(f"{name} makes {what}, but the table has none: name the columns it uses in {option.key}")
    return (name if generator.makes_record_keys else None, name if generator.makes_partition_paths else None)


def _partitions(keygen: KeyGenType, fields: tuple[PartitionField, ...]) -> tuple[PartitionField, ...]:
    if keygen in (KeyGenType.NON_PARTITION, KeyGenType.GLOBAL_DELETE):
        return ()
    if keygen is KeyGenType.TIMESTAMP:
        return tuple(PartitionField(field.name, PartitionKind.TIMESTAMP) for field in fields)
    if keygen is KeyGenType.CUSTOM:
        return fields
    return tuple(PartitionField(field.name) for field in fields)


def _check_single_fields(keygen: KeyGenType, records: Sequence[str], partitions: Sequence[PartitionField]) -> None:
    """Refuse several fields, or no partition field, for a generator that takes one of each."""
    if len(records) > 1:
        raise ConfigError(
            f"the key generator {keygen} requires one record key field, but there are {len(records)}: "
            f"{', '.join(records)}; use COMPLEX (or CUSTOM) for several"
        )
    if len(partitions) != 1:
        raise ConfigError(
            f"the key generator {keygen} requires exactly one partition field, but there are "
            f"{len(partitions)}; use COMPLEX for several and NON_PARTITION for none"
        )


def _named_parts(
    keygen: KeyGenType,
    records: tuple[str, ...],
    version: int,
    options: Mapping[str, str],
    properties: Mapping[str, str],
) -> bool:
    if keygen is KeyGenType.GLOBAL_DELETE or len(records) > 1:
        return True
    if keygen is not KeyGenType.COMPLEX:
        return False
    # A new table of version 9 has the field name. Below it, releases differ for a single field: 0.15 and 1.0, the
    # releases of those versions, write only the value; 1.1 and later do so only if this option is true, and refuse such
    # tables until it is set.
    if version >= 9:
        return True
    new_encoding = COMPLEX_KEYGEN_NEW_ENCODING.key
    return _is_set(new_encoding, options, properties) and not _flag(new_encoding, options, properties)


def _lookup(key: str, options: Mapping[str, str], properties: Mapping[str, str]) -> str | None:
    for source in (options, properties):
        for spelling in spellings(key):
            value = source.get(spelling)
            if value is not None:
                return value
    return None


def _is_set(key: str, options: Mapping[str, str], properties: Mapping[str, str]) -> bool:
    return key in options or key in properties


def _flag(key: str, options: Mapping[str, str], properties: Mapping[str, str]) -> bool:
    text = options.get(key, properties.get(key, "false")).strip().lower()
    if text not in ("true", "false"):
        raise InvalidOptionError(key, text, "true, false")
    return text == "true"
