"""Folders of a source as partitions of the table: their style, and checks that later writes make the same paths."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, KeySpec
from pyhudi.keygen.partition_path_formatter import partition_paths
from pyhudi.keygen.partition_value_extractor import (
    decode_partition_paths,
    has_known_kinds,
    partition_fields,
    partition_texts,
)
from pyhudi.services.bootstrap.source_listing import DECODER, partition_path_translator
from pyhudi.storage import Storage
from pyhudi.table.config.key_generator_type import PartitionKind
from pyhudi.table.config.table_config import TableConfig

_ENCODED = "%[0-9A-Fa-f]{2}"
"""URL-encoded characters."""
_AS_TEXTS = "declare the column as a string (schema=, or the columns of the DataFrame)"
_RENAME = (
    f"rename it as later writes do: {DEFAULT_PARTITION} for no value, microseconds since 1970 for timestamps, lower "
    "case for booleans"
)
_DECODE = (
    f"set {options.BOOTSTRAP_TRANSLATOR.key}={DECODER}, by which the table has the decoded names of folders, and "
    f"leave out {options.URL_ENCODE_PARTITIONING.key}"
)


def has_url_encoded_folders(listed: pa.Table, opts: Options) -> bool:
    """Return True if names of folders have URL-encoded characters, and nothing decodes them: Spark writes such names of
    values with special characters."""
    encoded = pc.match_substring_regex(pc.unique(listed["partition"]), _ENCODED)
    return partition_path_translator(opts) is None and bool(pc.any(encoded).as_py())


def check_folder_columns(storage: Storage, listed: pa.Table, config: TableConfig) -> None:
    """Check that folders ``column=value`` are those of the partition columns of the table, in this order. Otherwise the
    names would become parts of the values.

    Args:
        storage: Storage of the source.
        listed: The files of the source.
        config: The table.

    Raises:
        ConfigError: They are of other columns.
    """
    fields = [field.name for field in config.partition_fields]
    paths = pc.unique(listed["partition"]).to_pylist()
    of_folders = {tuple(part.partition("=")[0] for part in path.split("/") if "=" in part) for path in paths}
    if not fields or len(of_folders) != 1 or any("=" not in part for path in paths for part in path.split("/")):
        return
    names = list(of_folders.pop())
    if names != fields:
        raise ConfigError(
            f"the folders of {storage.uri()} have the columns ({', '.join(names)}), as {paths[0]!r}, but the partition "
            f"fields are ({', '.join(fields)}): set {options.PARTITIONPATH_FIELD.key}={','.join(names)}, or "
            f"{options.HIVE_STYLE_PARTITIONING.key}=false if {names[0] + '=…'!r} is part of the values"
        )


def has_hive_style_folders(listed: pa.Table, config: TableConfig) -> bool:
    """Return True if the folders of all files have the names of the partition columns of the table and values."""
    paths = pc.unique(listed["partition"]).to_pylist()
    return bool(config.partition_fields) and all(_is_hive_style(path, config) for path in paths)


def _is_hive_style(path: str, config: TableConfig) -> bool:
    fields = [field.name for field in config.partition_fields]
    return [part.partition("=")[0] for part in path.split("/") if "=" in part] == fields


def check_partitions(storage: Storage, listed: pa.Table, config: TableConfig) -> None:
    """Check that the folders of a source are partitions of the table, which later writes use as well.

    Args:
        storage: Storage of the source.
        listed: The files of the source.
        config: The table.

    Raises:
        ConfigError: A folder is not.
    """
    fields = [field.name for field in config.partition_fields]
    for path in pc.unique(listed["partition"]).to_pylist():
        texts = partition_texts(config, path)
        hive = bool(fields) and _is_hive_style(path, config)
        if texts is None or (fields and not path) or (hive and not config.hive_style):
            cure = (
                f"set {options.HIVE_STYLE_PARTITIONING.key}=true"
                if hive
                else f"set the columns of its folders in {options.PARTITIONPATH_FIELD.key}"
            )
            raise ConfigError(
                f"the folder {_source_folder(listed, path)!r} of {storage.uri()} is not a partition path of the fields "
                f"({', '.join(fields) or 'none'}); {cure}"
            )


def check_partition_values(
    storage: Storage, listed: pa.Table, config: TableConfig, spec: KeySpec, schema: pa.Schema
) -> None:
    """Check that the values of partitions have the types of their columns, and that later writes of these values make
    the same paths.

    Args:
        storage: Storage of the source.
        listed: The files of the source.
        config: The table.
        spec: Its keys.
        schema: Its columns.

    Raises:
        ConfigError: A folder is of another type, or would be a second partition beside that of later writes.
        RecordKeyError: Later writes on Spark might make another text of a number.
    """
    fields = partition_fields(config)
    if not has_known_kinds(config) or any(field.kind is PartitionKind.TIMESTAMP for field in fields):
        return
    if spec.slash_dates and spec.url_encode:  # Slashes of a path are dashes of the value, or they would be encoded.
        return
    paths = pc.unique(listed["partition"])
    values = decode_partition_paths(config, schema, paths.to_pylist())
    _check_value_types(storage, listed, config, paths, values)
    _check_same_paths(storage, listed, spec, paths, values.select([field.name for field in fields]))


def _check_value_types(
    storage: Storage, listed: pa.Table, config: TableConfig, paths: pa.Array, values: pa.Table
) -> None:
    """Check that each part of the partition paths has a value of the type of its column."""
    fields = partition_fields(config)
    for path, *of_path in zip(paths.to_pylist(), *(values[field.name].to_pylist() for field in fields), strict=True):
        for field, text, value in zip(fields, partition_texts(config, path) or (), of_path, strict=True):
            if value is None and text is not None:
                data_type = values.schema.field(field.name).type
                raise ConfigError(
                    f"the folder {_source_folder(listed, path)!r} of {storage.uri()} has no value of the type "
                    f"{data_type} of the partition column {field.name!r}; {_RENAME}. Or, if the files lack the "
                    f"column, {_AS_TEXTS}"
                )


def _check_same_paths(storage: Storage, listed: pa.Table, spec: KeySpec, paths: pa.Array, values: pa.Table) -> None:
    """Check that the partition paths are those that later writes make of their ``values``."""
    columns = [column.combine_chunks() for column in values.columns]
    made = partition_paths(pa.RecordBatch.from_arrays(columns, names=values.column_names), spec)
    others = pc.index(pc.not_equal(made, paths), True).as_py() if columns else -1
    if others >= 0:
        path, later = paths[others].as_py(), made[others].as_py()
        texts = all(pa.types.is_string(column.type) for column in columns)
        is_empty = DEFAULT_PARTITION in later and DEFAULT_PARTITION not in path  # no writer names a folder so
        other_cure = "" if is_empty else f", or {_DECODE if texts else _AS_TEXTS}"
        raise ConfigError(
            f"the folder {_source_folder(listed, path)!r} of {storage.uri()} would be a second partition beside "
            f"{later!r}, which later writes make of the same values; rename the folder so{other_cure}"
        )


def _source_folder(listed: pa.Table, path: str) -> str:
    """Return the folder in the source of a partition path."""
    return str(listed["source_partition"][pc.index(listed["partition"], path).as_py()].as_py())
