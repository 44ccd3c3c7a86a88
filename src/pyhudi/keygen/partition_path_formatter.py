"""Partition paths of Arrow rows, as stored in ``_hoodie_partition_path``, for writes without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import property_keys
from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, ENCODED_CHARS, KeySpec
from pyhudi.keygen.record_key_formatter import check_texts_of_floats, field_texts
from pyhudi.schema.name_resolution import field_type
from pyhudi.table.config.key_generator_type import PartitionField, PartitionKind


def invalid_folder_cure(*, url_encode: bool) -> str:
    """Return what to do about a partition path that is no folder of the table.

    Args:
        url_encode: Partition paths are URL-encoded, which leaves dots as they are.
    """
    if url_encode:
        return f"change the value, or use hive-style partition paths ({property_keys.HIVE_STYLE_PARTITIONING})"
    return f"change the value or URL-encode partition paths ({property_keys.URL_ENCODE_PARTITIONING})"


def partition_paths(rows: pa.RecordBatch, spec: KeySpec) -> pa.StringArray:
    """Return the partition paths of rows that have the partition fields.

    Raises:
        RecordKeyError: A field is missing or has an unsupported type, a value is not a valid folder name, or a number
            may have another text on Spark.
        UnsupportedTableError: A field holds formatted times (timestamp-based key generators), or a generator of the
            user makes the paths.
    """
    if spec.path_class is not None:
        raise UnsupportedTableError(f"the partition paths that {spec.path_class} makes require Spark")
    if not spec.partition_fields:
        return pa.repeat(pa.scalar("", pa.string()), rows.num_rows)
    check_texts_of_floats(rows, [field.name for field in spec.partition_fields])
    levels = [_level(rows, field, spec) for field in spec.partition_fields]
    encoded = pc.binary_join_element_wise(*levels, "/").dictionary_encode()
    paths = encoded.dictionary
    bad = paths.filter(pc.match_substring_regex(paths, spec.invalid_folder))
    if len(bad):
        raise RecordKeyError(
            f"the partition path {bad[0].as_py()!r} is not a valid folder of the table; "
            f"{invalid_folder_cure(url_encode=spec.url_encode)}"
        )
    return paths.take(encoded.indices)


def _level(rows: pa.RecordBatch, field: PartitionField, spec: KeySpec) -> pa.StringArray:
    """Return the part of the path for one field. Distinct values are processed once."""
    if field.kind is PartitionKind.TIMESTAMP:
        raise UnsupportedTableError(
            f"the partition field {field.name!r} holds formatted times, which are supported only on Spark"
        )
    encoded = field_texts(rows, field.name, spec).dictionary_encode()
    data_type = None if not spec.sql_timestamps else field_type(rows.schema, field.name)
    if data_type is not None and pa.types.is_timestamp(data_type) and data_type.tz is not None:
        raise UnsupportedTableError(
            f"the partition field {field.name!r} holds timestamps in the time zone of Apache Hudi's SQL statements, "
            "which are supported only on Spark with pyhudi.activate"
        )
    text = encoded.dictionary
    text = pc.if_else(pc.equal(text, ""), DEFAULT_PARTITION, text)
    if spec.url_encode:
        text = _url_encoded(text)
    if spec.slash_dates:
        text = pc.replace_substring(text, "-", "/")
    text = pc.fill_null(text.take(encoded.indices), DEFAULT_PARTITION)
    return pc.binary_join_element_wise(f"{field.name}=", text, "") if spec.hive_style else text


def _url_encoded(text: pa.StringArray) -> pa.StringArray:
    """Return the text with ENCODED_CHARS as ``%XX``."""
    text = pc.replace_substring(text, "%", "%25")
    for char in ENCODED_CHARS.replace("%", ""):
        text = pc.replace_substring(text, char, f"%{ord(char):02X}")
    return text
