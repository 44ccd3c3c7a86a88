"""Specification of record keys and partition paths: a pure description, run by an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from pyhudi.errors import ConfigError, InvalidOptionError, UnsupportedTableError
from pyhudi.keygen.timestamp_settings import TimestampSpec
from pyhudi.table.config.key_generator_type import KeyGenType, PartitionField, PartitionKind

NULL_KEY_PART = "__null__"
EMPTY_KEY_PART = "__empty__"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

#: Characters that url-encoded partition paths write as ``%`` and two upper-case hex digits.
ENCODED_CHARS = "".join(map(chr, range(0x20))) + "\x7f\"#%'*/:=?[\\]^{"

NEW_ENCODING = "hoodie.write.complex.keygen.new.encoding"
SLASH_DATES = "hoodie.datasource.write.slash.separated.date.partitioning"
CONSISTENT_TIMESTAMPS = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
_TIMEBASED = "hoodie.keygen.timebased."
_TIMEBASED_OLD = ("hoodie.streamer.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")


class KeyConfig(Protocol):
    """The part of the table config that decides keys."""

    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def version(self) -> int: ...
    @property
    def record_keys(self) -> tuple[str, ...]: ...
    @property
    def partition_fields(self) -> tuple[PartitionField, ...]: ...
    @property
    def keygen(self) -> KeyGenType: ...
    @property
    def hive_style(self) -> bool: ...
    @property
    def url_encode(self) -> bool: ...
    @property
    def slash_dates(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Specification of the record key and the partition path of a row.

    ``record_fields``: key fields in order, dots lead into structs; empty: keys are generated per row.
    ``named_parts``: the key is ``f1:v1,f2:v2`` instead of the one value's text.
    ``partition_fields``: path segments in order; empty: not partitioned.
    ``slash_dates``: the dashes of the (single, simple) partition value become slashes.
    ``consistent_timestamps``: timestamps are written like ``2024-01-02 03:04:05.678`` in the JVM's zone, cut to
    milliseconds, instead of epoch microseconds.
    """

    keygen: KeyGenType
    record_fields: tuple[str, ...]
    named_parts: bool
    partition_fields: tuple[PartitionField, ...]
    hive_style: bool = False
    url_encode: bool = False
    slash_dates: bool = False
    consistent_timestamps: bool = False
    timestamp: TimestampSpec | None = None

    @property
    def auto_keys(self) -> bool:
        """True if keys are generated rather than read from columns."""
        return not self.record_fields

    @property
    def unset_key_message(self) -> str:
        """Description of a row without a key."""
        names = ", ".join(repr(name) for name in self.record_fields)
        if len(self.record_fields) == 1:
            return f"the record key field {names} is null or empty"
        return f"the record key fields {names} are all null or empty"

    @classmethod
    def from_config(cls, config: KeyConfig, options: Mapping[str, str] | None = None) -> KeySpec:
        """The description that a table's config and the options of one write add up to.

        What the table says about its keys wins; options add what tables do not store (timestamp parameters of a CUSTOM
        generator, consistent timestamps, the encoding of one-field complex keys below version 9).
        Raises ConfigError, or UnsupportedTableError for a generator class of the user's own.
        """
        options = options or {}
        keygen = config.keygen
        if keygen is KeyGenType.USER_PROVIDED:
            name = config.properties.get("hoodie.table.keygenerator.class", "a class of its own")
            raise UnsupportedTableError(
                f"the table's keys are made by {name}, Java code that cannot run here; "
                "pyhudi can read the table, but not write to it"
            )
        if keygen is KeyGenType.HOODIE_TABLE_METADATA:
            raise UnsupportedTableError("this is a metadata table; it is not written directly")
        records = config.record_keys
        partitions = _partitions(keygen, config.partition_fields)
        if keygen in (KeyGenType.SIMPLE, KeyGenType.TIMESTAMP):
            if len(records) > 1:
                raise ConfigError(
                    f"the key generator {keygen} takes one record key field, but there are {len(records)}: "
                    f"{', '.join(records)}; use COMPLEX (or CUSTOM) for several"
                )
            if len(partitions) != 1:
                raise ConfigError(
                    f"the key generator {keygen} takes exactly one partition field, but there are {len(partitions)}; "
                    "use COMPLEX for several and NON_PARTITION for none"
                )
        # Apache Hudi makes such tables without noting it in their properties: then the writer's option says so
        slash = config.slash_dates or _flag(SLASH_DATES, options, config.properties)
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
            consistent_timestamps=_flag(CONSISTENT_TIMESTAMPS, options, config.properties),
            timestamp=timestamp,
        )

    def matching(self, *sample_keys: str) -> KeySpec:
        """The same description with the one-field complex encoding that existing keys of the table show.

        Tables below version 9 hold either ``id:a`` or ``a``, depending on the release and options of their first
        writer; going on in the other form would duplicate records. *sample_keys*: any keys of the table (the footer of
        a base file has the least and the greatest), none when the table is empty.
        """
        if self.keygen is not KeyGenType.COMPLEX or len(self.record_fields) != 1 or not sample_keys:
            return self
        return replace(self, named_parts=all(key.startswith(self.record_fields[0] + ":") for key in sample_keys))


def _partitions(keygen: KeyGenType, fields: tuple[PartitionField, ...]) -> tuple[PartitionField, ...]:
    if keygen in (KeyGenType.NON_PARTITION, KeyGenType.GLOBAL_DELETE):
        return ()
    if keygen is KeyGenType.TIMESTAMP:
        return tuple(PartitionField(field.name, PartitionKind.TIMESTAMP) for field in fields)
    if keygen is KeyGenType.CUSTOM:
        return fields
    return tuple(PartitionField(field.name) for field in fields)


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
    # Version 9 tables always name the field. Below it releases differ for a single field: 0.15 and 1.0, whose own
    # versions these are, write the bare value; 1.1 and later do it only if this option is true and refuse such tables
    # until their user has decided.
    if version >= 9:
        return True
    return _is_set(NEW_ENCODING, options, properties) and not _flag(NEW_ENCODING, options, properties)


def _lookup(key: str, options: Mapping[str, str], properties: Mapping[str, str]) -> str | None:
    for source in (options, properties):
        for spelling in (key, *(old + key.removeprefix(_TIMEBASED) for old in _TIMEBASED_OLD)):
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
