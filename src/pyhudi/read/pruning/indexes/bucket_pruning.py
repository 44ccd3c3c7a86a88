"""Pruning by the bucket index: a filter on the values of all hash fields matches few buckets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import Options, options
from pyhudi.config.enums import BucketIndexEngine, IndexType
from pyhudi.errors import QueryError
from pyhudi.index.bucket_counts import BucketCounts, load_counts_history
from pyhudi.index.bucket_file_ids import bucket_numbers
from pyhudi.index.bucket_hash import java_list_hash
from pyhudi.index.bucket_index import BucketIndex
from pyhudi.index.bucket_number_check import check_buckets
from pyhudi.keygen.key_spec import KeySpec
from pyhudi.read.filters.row_filter import RowFilter
from pyhudi.read.filters.terms import Term, literal
from pyhudi.read.query.query import Query
from pyhudi.table.config.key_generator_type import KeyGenType
from pyhudi.table.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.table.view.file_group_keys import in_groups
from pyhudi.table.view.file_group_state import replaced_groups

_MAX_KEYS = 10_000


def prune_buckets(
    table: TableSnapshot,
    schema: pa.Schema,
    slices: pa.Table,
    *,
    row_filter: RowFilter | None,
    opts: Options | None,
    query: Query,
) -> pa.Table:
    """Return the slices (SLICE_SCHEMA) that may hold matching rows, provided that options of the read declare the
    bucket index and its number of buckets.

    Raises:
        ConfigError: The table was created with other settings of the index.
    """
    if opts is None or row_filter is None or not row_filter.anyof or not slices.num_rows:
        return slices
    bucketing = _declared_buckets(table.config, opts)
    if bucketing is None:
        return slices
    hashes = _hashes_of_filter(bucketing, KeySpec.from_config(table.config, opts), schema, row_filter.anyof)
    if hashes is None:
        return slices
    numbers = bucket_numbers(slices["file_id"]).combine_chunks()
    if numbers.null_count:
        return slices
    changes = load_counts_history(table.storage, table.active.timeline)
    keep = _has_unknown_numbers(table, changes, slices, query)
    known = pc.invert(keep)
    for era, begun in _eras(changes, bucketing, slices):
        in_era = pc.and_(begun, known)
        if not pc.any(in_era).as_py():
            continue
        # Wrong settings would hide rows.
        check_buckets(table.storage, era, slices.filter(in_era), populate_meta_fields=table.config.populate_meta_fields)
        counts = era.counts_of(slices["partition"])
        for count in pc.unique(counts).to_pylist():
            buckets = pa.array(sorted({h % count for h in hashes}), pa.int32())
            in_buckets = pc.and_(pc.equal(counts, count), pc.is_in(numbers, value_set=buckets))
            keep = pc.or_(keep, pc.and_(in_era, in_buckets))
    return slices.filter(keep)


def _declared_buckets(config: TableConfig, opts: Options) -> BucketIndex | None:
    """Return the buckets of keys that options of a read declare; None if they do not, or if pruning is off."""
    if opts.get_typed(options.INDEX_TYPE) is not IndexType.BUCKET or not opts.get_typed(options.BUCKET_PRUNING):
        return None
    if opts.get_typed(options.BUCKET_ENGINE) is not BucketIndexEngine.SIMPLE:
        return None
    return None if config.keygen is KeyGenType.USER_PROVIDED else BucketIndex.from_options(config, opts)


def _has_unknown_numbers(
    table: TableSnapshot, changes: Sequence[tuple[str, BucketCounts]], slices: pa.Table, query: Query
) -> pa.Array:
    """Return which slices (boolean) may have other numbers of buckets than those that the table has had.

    These are the slices, of a query of the past, in file groups that were replaced since by something else than a
    change of the numbers: the save mode overwrite exchanges these along with the table, and does not keep the old ones.
    """
    if query.as_of is None and not query.is_incremental:
        return pa.repeat(pa.scalar(False), slices.num_rows)
    replaced = replaced_groups(table.active, table.active.timeline)
    instants = pa.array([instant for instant, _ in changes], pa.string())
    others = replaced.filter(pc.invert(pc.is_in(replaced["instant"], value_set=instants)))
    return in_groups(slices, others)


def _eras(
    changes: Sequence[tuple[str, BucketCounts]], bucketing: BucketIndex, slices: pa.Table
) -> Iterator[tuple[BucketIndex, pa.Array]]:
    """Return the numbers of buckets that the table has had, and which slices (boolean) have them.

    A change of the numbers rewrites the partitions concerned, so slices that are older than it, which time travel
    reads, have the earlier ones.

    Raises:
        ConfigError: The options contain other numbers than the table has now.
    """
    now = bucketing.with_counts(changes[-1][1] if changes else None)
    instants = slices["base_instant"].combine_chunks()
    eras = [("", bucketing), *((since, replace(now, counts=counts)) for since, counts in changes)]
    ends = [since for since, _ in changes]
    for (since, era), until in zip_longest(eras, ends):
        begun = pc.greater_equal(instants, since)
        yield era, begun if until is None else pc.and_(begun, pc.less(instants, until))


def _hashes_of_filter(
    bucketing: BucketIndex, spec: KeySpec, schema: pa.Schema, anyof: Sequence[Sequence[Term]]
) -> set[int] | None:
    """Return the hashes of a filter's rows; None: any."""
    hashes_of_branches: set[int] = set()
    for terms in anyof:
        keys = _key_values(bucketing, spec, schema, terms)
        if keys is None:
            return None
        for values in keys:
            hashes = _hashes(bucketing, spec, values)
            if hashes is None:
                return None
            hashes_of_branches |= hashes
    return hashes_of_branches


def _key_values(
    bucketing: BucketIndex, spec: KeySpec, schema: pa.Schema, terms: Sequence[Term]
) -> list[tuple[str, ...]] | None:
    """Return the texts of the hash fields, in the order of the key, that the terms allow; None: not all fields are
    restricted."""
    columns: list[list[str]] = []
    count = 1
    for name in (field for field in spec.record_fields if field in bucketing.fields):
        equal_terms = [term for term in terms if term.column == name and term.op in ("=", "==", "in")]
        if not equal_terms or name not in schema.names:
            return None
        texts = [_text(value, schema.field(name).type, name) for value in equal_terms[0].values]
        key_texts = [text for text in texts if text is not None]
        count *= len(key_texts)
        if len(key_texts) < len(texts) or count > _MAX_KEYS:
            return None
        columns.append(key_texts)
    return list(product(*columns))


def _hashes(bucketing: BucketIndex, spec: KeySpec, values: tuple[str, ...]) -> set[int] | None:
    """Return the hashes of a record with these values; None: the values do not determine them."""
    if len(spec.record_fields) == 1:
        name, value = spec.record_fields[0], values[0]
        forms = [f"{name}:{value}" if spec.named_parts else value]
        if spec.keygen is KeyGenType.COMPLEX:
            forms = [value, f"{name}:{value}"]  # Releases before version 9 differ.
        return {bucketing.hash_of(form) for form in forms}
    if any("," in value or ":" in value for value in values):
        return None  # The hashed text depends on other fields of the key.
    return {java_list_hash(values)}


def _text(value: Any, data_type: pa.DataType, column: str) -> str | None:
    """Return the text of a value in a key; None for null, for types whose text depends on options, and for values that
    are compared in another type."""
    try:
        scalar = literal(value, data_type, column)
    except QueryError:
        return None
    value_of_type = scalar.as_py() if scalar.type == data_type else None
    if isinstance(value_of_type, str) and value_of_type:
        return value_of_type
    if isinstance(value_of_type, int) and not isinstance(value_of_type, bool):
        return str(value_of_type)
    return (
        value_of_type.isoformat()
        if isinstance(value_of_type, dt.date) and not isinstance(value_of_type, dt.datetime)
        else None
    )
