"""Warnings about conditions with a surprising meaning."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.errors import PartitionValueWarning, warn
from pyhudi.keygen.partition_value_extractor import partition_fields
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.table.config.key_generator_type import PartitionKind
from pyhudi.table.config.table_config import TableConfig


def warn_of_path_texts(config: TableConfig, schema: pa.Schema, row_filter: RowFilter | None) -> None:
    """Warn of a condition that compares the column of a timestamp key generator with the text of a partition path.

    Apache Hudi's readers return the text of the path for such a column; here it has the written values, usually
    numbers, which no such text equals.

    Args:
        config: The table.
        schema: Columns of the query.
        row_filter: The condition.
    """
    if row_filter is None or row_filter.expression is not None:
        return
    names = [
        field.name
        for field in partition_fields(config)
        if field.kind is PartitionKind.TIMESTAMP
        and field.name in schema.names
        and not pa.types.is_string(schema.field(field.name).type)
    ]
    for name in names:
        as_text = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
        comparable = row_filter.for_pruning(as_text)
        terms = (
            [term for group in comparable.anyof for term in group if term.column == name]
            if comparable is not None
            else []
        )
        texts = [v for term in terms for v in term.values if isinstance(v, str) and not v.lstrip("-").isdecimal()]
        if texts:
            warn(
                f"the condition on {name!r} compares it with the text {texts[0]!r}, which looks like a partition "
                f"path; the column holds the written values, of type {schema.field(name).type}, and no row "
                "matches: compare it with such values, or use _hoodie_partition_path for paths",
                PartitionValueWarning,
            )
