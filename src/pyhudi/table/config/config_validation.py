"""Validation of the options of a write or read against the table: contradictions raise an error, missing options are
filled in.

The rules are those of Apache Hudi (measured on 1.2.0) with three exceptions: blanks in lists of columns are ignored, a
key generator and its ``Avro`` variant are equivalent, and a partition column for a table without partitions raises an
error, whereas Apache Hudi ignores it.
"""

from __future__ import annotations

from typing import Any

from pyhudi.config import Option, Options, options, property_keys
from pyhudi.config.enums import MergeMode, TableType
from pyhudi.config.option import option_text
from pyhudi.config.property_keys import TIMESTAMP_KEYGEN_PREFIX
from pyhudi.errors import OptionWithoutEffectWarning, TableConfigConflictError, warn
from pyhudi.table.config.key_generator_type import (
    UNPARTITIONED_GENERATORS,
    KeyGenType,
    class_name,
    parse_keygen,
    parse_partition_fields,
)
from pyhudi.table.config.merge_settings import DELETE_FIELD, DELETE_MARKER
from pyhudi.table.config.payload_classes import PAYLOADS
from pyhudi.table.config.typed_properties import TableProperties


def validate_options(config: TableProperties, opts: Options) -> Options:
    """Return the options with all values that the table determines.

    Warns OptionWithoutEffectWarning for another format of base files, and for ordering columns that the table lacks,
    from version 8 on.

    Raises:
        TableConfigConflictError: An option contradicts the table. The message has key, both values, and the solution.
    """
    _check_identity(config, opts)
    _check_keys(config, opts)
    _check_partitions(config, opts)
    _check_merging(config, opts)
    return opts.merged(_filled(config, opts))


def _check_identity(config: TableProperties, opts: Options) -> None:
    # A merge-on-read table keeps its type silently, because jobs without this option mean the default.
    if opts.is_set(options.TABLE_TYPE) and config.table_type is TableType.COPY_ON_WRITE:
        _compare(opts, options.TABLE_TYPE, config.table_type)
    name = opts.get_typed(options.TABLE_NAME)
    if name and name.lower() != config.name.lower():
        raise _conflict(opts, options.TABLE_NAME, config.name, name)
    database = opts.get_typed(options.DATABASE_NAME)
    if database and config.database and database.lower() != config.database.lower():
        raise _conflict(opts, options.DATABASE_NAME, config.database, database)
    version = opts.get(property_keys.VERSION)
    if version is not None and version not in (str(config.version), opts.text(options.WRITE_TABLE_VERSION)):
        raise _conflict_of(property_keys.VERSION, str(config.version), version)
    _compare(opts, options.TIMELINE_TIMEZONE, config.timezone)
    _compare(opts, options.POPULATE_META_FIELDS, config.populate_meta_fields)
    _compare(opts, options.CDC_ENABLED, config.cdc_enabled)
    if config.cdc_enabled:
        _compare(opts, options.CDC_MODE, config.cdc_mode)
    _compare(opts, options.PARTITION_METAFILE_BASE_FORMAT, config.partition_metadata_format is not None)
    base_files = opts.get_typed(options.BASE_FILE_FORMAT)
    if opts.is_set(options.BASE_FILE_FORMAT) and base_files is not config.base_file_format:
        warn(
            f"{opts.spelling(options.BASE_FILE_FORMAT)}={base_files} has no effect: table {config.name!r} has base "
            f"files of format {config.base_file_format}; leave the option out, or write to a new table",
            OptionWithoutEffectWarning,
        )


def _check_keys(config: TableProperties, opts: Options) -> None:
    requested = opts.get_typed(options.RECORDKEY_FIELD)
    if requested and requested != config.record_keys:
        raise _conflict(
            opts,
            options.RECORDKEY_FIELD,
            ",".join(config.record_keys) or "none: keys are generated",
            ",".join(requested),
        )
    generator = opts.get_typed(options.KEYGENERATOR_CLASS)
    if generator:
        kind = parse_keygen(generator, opts.spelling(options.KEYGENERATOR_CLASS))
        same = generator == config.keygen_class if kind is KeyGenType.USER_PROVIDED else kind is config.keygen
        if not same:
            raise _conflict(opts, options.KEYGENERATOR_CLASS, str(config.keygen), generator)
    for key, value in opts.with_prefix(TIMESTAMP_KEYGEN_PREFIX).items():
        stored = config.properties.get(key)
        if stored is not None and stored != value:
            raise _conflict_of(key, stored, value)


def _check_partitions(config: TableProperties, opts: Options) -> None:
    _compare(opts, options.HIVE_STYLE_PARTITIONING, config.hive_style)
    _compare(opts, options.URL_ENCODE_PARTITIONING, config.url_encode)
    _compare(opts, options.DROP_PARTITION_COLUMNS, config.drop_partition_columns)
    if options.SLASH_SEPARATED_DATE_PARTITIONING.key in config.properties:
        _compare(opts, options.SLASH_SEPARATED_DATE_PARTITIONING, config.slash_dates)
    spec = opts.text(options.PARTITIONPATH_FIELD)
    if spec is None or (config.keygen in UNPARTITIONED_GENERATORS and opts.is_set(options.KEYGENERATOR_CLASS)):
        return  # A generator without partitions ignores the columns, also in Apache Hudi.
    requested = parse_partition_fields(spec)
    stored = config.partition_fields
    same = [field.name for field in requested] == [field.name for field in stored]
    typed = ":" in spec
    if same and typed:
        kinds_known = config.keygen is KeyGenType.CUSTOM
        stored_kinds = ":" in config.partition_spec  # Version 6 stores names only.
        same = kinds_known and (not stored_kinds or requested == stored)
    if not same:
        raise _conflict(
            opts, options.PARTITIONPATH_FIELD, config.partition_spec or "none: the table has no partitions", spec
        )


def _check_merging(config: TableProperties, opts: Options) -> None:
    _check_ordering(config, opts)
    if config.version >= 8:
        if not _decided_by_payload(config, opts):
            _compare(opts, options.MERGE_MODE, config.merging.mode)
        strategy = opts.get_typed(options.MERGE_STRATEGY_ID)
        if strategy and strategy != config.merging.strategy_id:
            raise _conflict(opts, options.MERGE_STRATEGY_ID, config.merging.strategy_id, strategy)
    _check_payload(config, opts)
    for key in (DELETE_FIELD, DELETE_MARKER):
        kept = config.merging.properties.get(key)
        if kept is not None and key in opts and opts[key] != kept:
            raise _conflict_of(key, kept, opts[key])


def _check_ordering(config: TableProperties, opts: Options) -> None:
    ordering = opts.get_typed(options.ORDERING_FIELDS)
    if ordering and config.ordering_fields and ordering != config.ordering_fields:
        raise _conflict(opts, options.ORDERING_FIELDS, ",".join(config.ordering_fields), ",".join(ordering))
    if ordering and not config.ordering_fields and config.version >= 8:
        warn(
            f"{opts.spelling(options.ORDERING_FIELDS)}={','.join(ordering)} has no effect: table {config.name!r} was "
            "created without ordering columns, so that the latest write of a record wins",
            OptionWithoutEffectWarning,
        )


def _check_payload(config: TableProperties, opts: Options) -> None:
    merging = config.merging
    payload = opts.get_typed(options.PAYLOAD_CLASS)
    stored = config.properties.get(property_keys.PAYLOAD_CLASS) or merging.payload_class
    if not payload or payload == stored or (config.version < 8 and not stored):
        return
    known = PAYLOADS.get(payload)
    if config.version < 8 or known is None or merging.payload_class is not None:
        raise _conflict(opts, options.PAYLOAD_CLASS, stored or f"merge mode {merging.mode}", payload)
    # It comes from a job of an older release: the mode of the table is used.
    if (known.mode, known.partial) != (merging.mode, merging.partial_update_mode):
        by = f"{merging.mode}, {merging.partial_update_mode}" if merging.partial_update_mode else merging.mode
        warn(
            f"{opts.spelling(options.PAYLOAD_CLASS)}={payload} has no effect: table {config.name!r} has another merge "
            f"mode ({by})",
            OptionWithoutEffectWarning,
        )


def _decided_by_payload(config: TableProperties, opts: Options) -> bool:
    """Return True if the options have the mode CUSTOM and the payload class of the table, which alone decides."""
    payload = opts.get_typed(options.PAYLOAD_CLASS)
    custom = opts.is_set(options.MERGE_MODE) and opts.get_typed(options.MERGE_MODE) is MergeMode.CUSTOM
    stored = (config.properties.get(key) for key in (property_keys.LEGACY_PAYLOAD_CLASS, property_keys.PAYLOAD_CLASS))
    return custom and payload is not None and payload in stored


def _filled(config: TableProperties, opts: Options) -> dict[str, str]:
    filled: dict[str, Any] = {
        options.TABLE_NAME.key: config.name,
        options.TABLE_TYPE.key: config.table_type,
        options.WRITE_TABLE_VERSION.key: config.version if config.version in (6, 8, 9) else None,
        options.TIMELINE_TIMEZONE.key: config.timezone,
        options.BASE_FILE_FORMAT.key: config.base_file_format,
        options.POPULATE_META_FIELDS.key: config.populate_meta_fields,
        options.CDC_ENABLED.key: config.cdc_enabled,
        options.HIVE_STYLE_PARTITIONING.key: config.hive_style,
        options.URL_ENCODE_PARTITIONING.key: config.url_encode,
        options.DROP_PARTITION_COLUMNS.key: config.drop_partition_columns,
        options.PARTITION_METAFILE_BASE_FORMAT.key: config.partition_metadata_format is not None,
        options.PARTITIONPATH_FIELD.key: _partition_spec(config, opts),
    }
    if config.database:
        filled[options.DATABASE_NAME.key] = config.database
    if config.record_keys:
        filled[options.RECORDKEY_FIELD.key] = ",".join(config.record_keys)
    if config.ordering_fields:
        filled[options.ORDERING_FIELDS.key] = ",".join(config.ordering_fields)
    if config.keygen is KeyGenType.USER_PROVIDED:
        filled[options.KEYGENERATOR_CLASS.key] = config.keygen_class
    else:
        filled[options.KEYGENERATOR_CLASS.key] = class_name(config.keygen)
    if config.cdc_enabled:
        filled[options.CDC_MODE.key] = config.cdc_mode
    if options.SLASH_SEPARATED_DATE_PARTITIONING.key in config.properties:
        filled[options.SLASH_SEPARATED_DATE_PARTITIONING.key] = config.slash_dates
    if config.version >= 8:
        filled[options.MERGE_MODE.key] = config.merging.mode
        filled[options.MERGE_STRATEGY_ID.key] = config.merging.strategy_id
    for key, value in config.merging.properties.items():
        filled[key] = value
    for key, value in config.properties.items():
        if key.startswith(TIMESTAMP_KEYGEN_PREFIX):
            filled[key] = value
    return filled


def _partition_spec(config: TableProperties, opts: Options) -> str:
    requested = opts.text(options.PARTITIONPATH_FIELD) or ""
    typed_by_options = config.keygen is KeyGenType.CUSTOM and ":" in requested and ":" not in config.partition_spec
    return requested if typed_by_options else config.partition_spec


def _compare(opts: Options, option: Option[Any], stored: object) -> None:
    """Raise an error if an option differs from the stored value."""
    if opts.is_set(option) and opts.get_typed(option) != stored:
        raise _conflict(opts, option, option_text(stored), option_text(opts.get_typed(option)))


def _conflict(opts: Options, option: Option[Any], stored: str, requested: str) -> TableConfigConflictError:
    return _conflict_of(opts.spelling(option), stored, requested)


def _conflict_of(key: str, stored: str, requested: str) -> TableConfigConflictError:
    return TableConfigConflictError(
        f"option {key}={requested!r} contradicts the value {stored!r} of the table; leave the option out to use the "
        "table's value, or write to a table with yours"
    )
