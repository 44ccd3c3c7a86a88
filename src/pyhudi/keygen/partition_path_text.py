"""Partition paths of Arrow rows: the text that ``_hoodie_partition_path`` has, where rows are written without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import RecordKeyError, UnsupportedTableError
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, ENCODED_CHARS, KeySpec
from pyhudi.keygen.record_key_text import value_text
from pyhudi.table.config.key_generator_type import PartitionField, PartitionKind

_NO_FOLDER = r"(^|/)\.{0,2}(/|$)|^\.hoodie(/|$)"
"""An empty level, "." and ".." name other folders than they say; ".hoodie" is the table's own."""


def partition_paths(rows: pa.RecordBatch, spec: KeySpec) -> pa.StringArray:
    """The partition paths of rows that have the partition fields.

    Raises:
        RecordKeyError: a field is missing or of a type that makes no folder, or a value cannot be a folder.
        UnsupportedTableError: a field holds times that are formatted (timestamp-based key generators).
    """
    if not spec.partition_fields:
        return pa.repeat(pa.scalar("", pa.string()), rows.num_rows)
    levels = [_level(rows, field, spec) for field in spec.partition_fields]
    encoded = pc.binary_join_element_wise(*levels, "/").dictionary_encode()
    paths = encoded.dictionary
    bad = paths.filter(pc.match_substring_regex(paths, _NO_FOLDER))
    if len(bad):
        raise RecordKeyError(
            f"the partition path {bad[0].as_py()!r} cannot be a folder of the table; change the value or url-encode "
            "partition paths (hoodie.datasource.write.partitionpath.urlencode)"
        )
    return paths.take(encoded.indices)


def _level(rows: pa.RecordBatch, field: PartitionField, spec: KeySpec) -> pa.StringArray:
    """The part of the path that one field makes. Values repeat, so the work is done once for each."""
    if field.kind is PartitionKind.TIMESTAMP:
        raise UnsupportedTableError(f"the partition field {field.name!r} holds formatted times, which only Spark makes")
    encoded = value_text(rows, field.name, spec).dictionary_encode()
    text = encoded.dictionary
    text = pc.if_else(pc.equal(text, ""), DEFAULT_PARTITION, text)
    if spec.url_encode:
        text = _url_encoded(text)
    if spec.slash_dates:
        text = pc.replace_substring(text, "-", "/")
    text = pc.fill_null(text.take(encoded.indices), DEFAULT_PARTITION)
    return pc.binary_join_element_wise(f"{field.name}=", text, "") if spec.hive_style else text


def _url_encoded(text: pa.StringArray) -> pa.StringArray:
    """The text with the characters of ENCODED_CHARS written as ``%XX``."""
    text = pc.replace_substring(text, "%", "%25")
    for char in ENCODED_CHARS.replace("%", ""):
        text = pc.replace_substring(text, char, f"%{ord(char):02X}")
    return text
