"""Properties of a new table: the keys and values that Apache Hudi writes for each table version.

Version 6 as release 0.15, version 8 as 1.0.2 (plus merge properties, as 1.2 adds), version 9 as 1.2.
"""

from __future__ import annotations

from pyhudi.config import Options, options, property_keys
from pyhudi.config.enums import FileFormat, Operation
from pyhudi.config.property_keys import TABLE_CHECKSUM, TIMESTAMP_KEYGEN_PREFIX
from pyhudi.errors import ConfigError, InvalidOptionError, UnsupportedTableError, warn
from pyhudi.table.config.key_generator_type import (
    UNPARTITIONED_GENERATORS,
    KeyGenType,
    class_name,
    infer_keygen,
    parse_keygen,
    parse_partition_fields,
    with_conversions,
)
from pyhudi.table.config.new_merge_settings import merge_properties_of_new_table, merge_settings_of_new_table
from pyhudi.table.config.properties_text import table_checksum

BOOTSTRAP_INDEX_CLASS = "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex"
_EXTRACTORS = "org.apache.hudi.hive."


def new_table_properties(opts: Options) -> dict[str, str]:
    """Return the content of ``hoodie.properties``, including the checksum.

    Raises ConfigError if the table name is missing or options contradict each other, and UnsupportedTableError for
    features that require Java code.
    """
    version = opts.get_typed(options.WRITE_TABLE_VERSION)
    _check_version(opts, version)
    name = opts.get_typed(options.TABLE_NAME)
    if not name:
        raise ConfigError(f"a new table requires a name: set {options.TABLE_NAME.key}")
    properties = {
        property_keys.NAME: name,
        property_keys.TYPE: str(opts.get_typed(options.TABLE_TYPE)),
        property_keys.VERSION: str(version),
        property_keys.TIMELINE_LAYOUT_VERSION: "1" if version < 8 else "2",
        property_keys.TIMELINE_TIMEZONE: str(opts.get_typed(options.TIMELINE_TIMEZONE)),
        property_keys.BASE_FILE_FORMAT: _base_format(opts),
        property_keys.ARCHIVELOG_FOLDER: opts.get_typed(options.ARCHIVE_FOLDER) if version < 8 else "history",
        property_keys.HIVE_STYLE_PARTITIONING: _flag(opts.get_typed(options.HIVE_STYLE_PARTITIONING)),
        property_keys.URL_ENCODE_PARTITIONING: _flag(opts.get_typed(options.URL_ENCODE_PARTITIONING)),
        property_keys.DROP_PARTITION_COLUMNS: _flag(opts.get_typed(options.DROP_PARTITION_COLUMNS)),
        property_keys.PARTITION_METAFILE_USE_BASE_FORMAT: _flag(opts.get_typed(options.PARTITION_METAFILE_BASE_FORMAT)),
        property_keys.POPULATE_META_FIELDS: _flag(opts.get_typed(options.POPULATE_META_FIELDS)),
    }
    database = opts.get_typed(options.DATABASE_NAME)
    if database or version < 8:
        properties[property_keys.DATABASE_NAME] = database or ""
    properties |= _properties_since(version, opts)
    properties |= bootstrap_properties(opts, version)
    properties |= _change_capture(opts)
    properties |= _keys(opts, version)
    properties |= merge_properties_of_new_table(merge_settings_of_new_table(opts), opts)
    properties[TABLE_CHECKSUM] = table_checksum(properties)
    return properties


def _properties_since(version: int, opts: Options) -> dict[str, str]:
    """Return the properties that tables have from version 8 or 9 on."""
    properties: dict[str, str] = {}
    if version >= 8:
        properties |= {
            property_keys.INITIAL_VERSION: str(version),
            property_keys.TIMELINE_PATH: "timeline",
            property_keys.TIMELINE_HISTORY_PATH: "history",
            property_keys.MULTIPLE_BASE_FILE_FORMATS: "false",
        }
    if version >= 9:
        properties[property_keys.TABLE_FORMAT] = "native"
        properties[property_keys.PARTITION_EXTRACTOR_CLASS] = _extractor(opts)
        if opts.get_typed(options.SLASH_SEPARATED_DATE_PARTITIONING):
            # Apache Hudi leaves this to the options of every writer; a table that records it cannot be written
            # incorrectly.
            properties[options.SLASH_SEPARATED_DATE_PARTITIONING.key] = "true"
    return properties


def _check_version(opts: Options, version: int) -> None:
    """Refuse another value of the property of the table than that of the option, which alone counts in Apache Hudi.

    Raises:
        ConfigError: The message has both values.
    """
    requested = opts.get(property_keys.VERSION)
    if requested is not None and requested != str(version):
        raise ConfigError(
            f"{property_keys.VERSION}={requested} does not choose the version of a new table, which would be "
            f"{version}: set {options.WRITE_TABLE_VERSION.key}"
        )


def keygen_of(opts: Options) -> KeyGenType:
    """Return the key generator of write options: that of the class if set, otherwise by the key and partition
    columns."""
    requested = opts.get_typed(options.KEYGENERATOR_CLASS)
    if requested:
        return parse_keygen(requested, opts.spelling(options.KEYGENERATOR_CLASS))
    kind = infer_keygen(opts.get_typed(options.RECORDKEY_FIELD), opts.text(options.PARTITIONPATH_FIELD) or "")
    wished = opts.get_typed(options.KEYGENERATOR_TYPE)
    if wished and parse_keygen(wished) is not kind:
        warn(
            f"{opts.spelling(options.KEYGENERATOR_TYPE)}={wished} has no effect, as in Apache Hudi: the key and "
            f"partition columns imply {kind}; set {options.KEYGENERATOR_CLASS.key} to override this",
        )
    return kind


def _keys(opts: Options, version: int) -> dict[str, str]:
    kind = keygen_of(opts)
    properties: dict[str, str] = {}
    record_keys = opts.text(options.RECORDKEY_FIELD)
    if record_keys:
        properties[property_keys.RECORDKEY_FIELDS] = record_keys
    spec = "" if kind in UNPARTITIONED_GENERATORS else opts.text(options.PARTITIONPATH_FIELD) or ""
    fields = parse_partition_fields(spec)
    typed = kind is KeyGenType.CUSTOM
    if typed:
        # Apache Hudi stores and requires the conversion of each column from version 8 on
        spec = ",".join(field.name for field in fields) if version < 8 else with_conversions(spec)
    properties[property_keys.PARTITION_FIELDS] = spec
    configured = opts.get_typed(options.KEYGENERATOR_CLASS) or ""
    if version < 8:
        properties[property_keys.KEY_GENERATOR_CLASS] = configured or class_name(kind)
    else:
        twin = "_AVRO" if "Avro" in configured.rsplit(".", 1)[-1] or configured.upper().endswith("_AVRO") else ""
        if kind is KeyGenType.USER_PROVIDED:
            twin = ""
            properties[property_keys.KEY_GENERATOR_CLASS] = configured
        properties[property_keys.KEY_GENERATOR_TYPE] = f"{kind}{twin}"
    if kind is KeyGenType.TIMESTAMP:
        timebased = opts.with_prefix(TIMESTAMP_KEYGEN_PREFIX)
        if version < 8:
            timebased.pop(options.TIMESTAMP_TYPE.key, None)
        properties |= timebased
    return properties


def bootstrap_properties(opts: Options, version: int) -> dict[str, str]:
    """Return the properties of a bootstrapped table; none unless the operation is ``bootstrap``."""
    source = opts.get_typed(options.BOOTSTRAP_BASE_PATH)
    if not source or opts.get_typed(options.OPERATION) is not Operation.BOOTSTRAP:
        return {}
    key, value = ("class", BOOTSTRAP_INDEX_CLASS) if version < 8 else ("type", "HFILE")
    return {options.BOOTSTRAP_BASE_PATH.key: source, f"hoodie.bootstrap.index.{key}": value}


def _change_capture(opts: Options) -> dict[str, str]:
    enabled = opts.get_typed(options.CDC_ENABLED)
    properties = {options.CDC_ENABLED.key: _flag(enabled)}
    if enabled:
        properties[options.CDC_MODE.key] = str(opts.get_typed(options.CDC_MODE))
    return properties


def _base_format(opts: Options) -> str:
    chosen = opts.get_typed(options.BASE_FILE_FORMAT)
    if chosen not in (FileFormat.PARQUET, FileFormat.ORC):
        raise InvalidOptionError(opts.spelling(options.BASE_FILE_FORMAT), str(chosen), "PARQUET, ORC")
    if opts.get_typed(options.MULTIPLE_BASE_FILE_FORMATS):
        raise UnsupportedTableError(
            f"{options.MULTIPLE_BASE_FILE_FORMATS.key}=true is not supported: tables with several base file "
            "formats cannot be written; leave the option out"
        )
    return str(chosen)


def _extractor(opts: Options) -> str:
    configured = opts.get_typed(options.PARTITION_EXTRACTOR_CLASS)
    if configured:
        return configured
    spec = opts.text(options.PARTITIONPATH_FIELD)
    if spec is None:
        return _EXTRACTORS + "MultiPartKeysValueExtractor"
    count = len(parse_partition_fields(spec))
    if count == 0:
        return _EXTRACTORS + "NonPartitionedExtractor"
    if count > 1:
        return _EXTRACTORS + "MultiPartKeysValueExtractor"
    if opts.get_typed(options.HIVE_STYLE_PARTITIONING):
        return _EXTRACTORS + "HiveStylePartitionValueExtractor"
    if opts.get_typed(options.SLASH_SEPARATED_DATE_PARTITIONING):
        return _EXTRACTORS + "SlashEncodedDayPartitionValueExtractor"
    return _EXTRACTORS + "SinglePartPartitionValueExtractor"


def _flag(value: bool) -> str:  # noqa: FBT001
    return "true" if value else "false"
