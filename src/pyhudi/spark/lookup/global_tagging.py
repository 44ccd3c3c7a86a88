"""Tagging of rows whose key is in another partition, for global indexes.

Measured on Apache Hudi: where partition paths are updated, the record is deleted at its old location and inserted at
the new one, unless the stored record wins by its ordering value, which then stays where it is. Where they are not
updated, the record is written to its old partition. There it also keeps the old values of its partition columns, so
that they go with the path: Apache Hudi writes the new values and then reads the old ones, from the path.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from pyhudi.errors import SchemaMismatchError, UnsupportedTableError
from pyhudi.schema.meta_fields import PARTITION_PATH, RECORD_KEY
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.keys.deduplication import ordering_values
from pyhudi.spark.keys.key_text import quoted, resolve
from pyhudi.spark.lookup.base_file_keys import FILE_NO, OLD_PARTITION
from pyhudi.spark.lookup.key_columns import KeyColumns, extra_name
from pyhudi.spark.spark_errors import failure
from pyhudi.write.location_columns import DELETE, ROW

_LOCATIONS, _OUT = "_pyhudi_locations", "_pyhudi_out"


def global_locations(
    locations: DataFrame, keys: KeyColumns, ordering: tuple[str, ...], kept: tuple[str, ...] = (), *, sequences: bool
) -> DataFrame:
    """Return one row per key with the list of its locations; *ordering* and *kept* are fields of the base rows;
    *sequences* as in `MergeSettings`."""
    base = StructType([field for field in locations.schema.fields if field.name.startswith("_pyhudi_base_")])
    stored = ordering_values(base, [extra_name(name) for name in ordering], sequences=sequences)
    strength = F.struct(F.lit(0).alias("none"), *(column.alias(f"o{i}") for i, column in enumerate(stored)))
    location = F.struct(
        F.col(OLD_PARTITION).alias("partition"),
        F.col(FILE_NO).alias("file_no"),
        F.col(ROW).alias("row"),
        strength.alias("strength"),
        _values(base, kept).alias("kept"),
    )
    return locations.groupBy(*keys.in_locations).agg(F.collect_list(location).alias(_LOCATIONS))


def apply_partition_changes(
    found: DataFrame,
    own: Mapping[str, Column],
    schema: StructType,
    ordering: tuple[str, ...],
    kept: tuple[str, ...],
    *,
    moves: bool,
    sequences: bool,
    refused: str = "",
) -> DataFrame:
    """Rows joined with the locations of their keys as the rows to be written. Lazy.

    *own* are the columns of the rows. The result has them with partition path, delete mark and, for rows that stay in
    another partition, the fields *kept* as the location demands; and file number and row position, null for new
    records. With *refused*, the reason, evaluation fails on a row that is no delete and whose record is in another
    partition.
    """
    locations = F.coalesce(F.col(_LOCATIONS), F.array())
    delete = F.coalesce(own[DELETE], F.lit(False))
    new = own[PARTITION_PATH]

    mine = _values(schema, kept)

    def out(partition: Column, file_no: Column, row: Column, is_delete: Column, values: Column = mine) -> Column:
        return F.struct(
            partition.alias("partition"),
            file_no.alias("file_no"),
            row.alias("row"),
            is_delete.alias("delete"),
            values.alias("kept"),
        )

    def stays(location: Column) -> Column:
        values = F.when(location["partition"] == new, mine).otherwise(location["kept"])
        return out(location["partition"], location["file_no"], location["row"], delete, values)

    fresh = out(new, F.lit(None).cast("int"), F.lit(None).cast("bigint"), F.lit(False))
    if not moves:
        known = F.transform(locations, stays)
        needed = F.size(locations) == 0
    else:
        incoming = ordering_values(schema, ordering, sequences=sequences)
        strength = F.struct(F.lit(0).alias("none"), *(column.alias(f"o{i}") for i, column in enumerate(incoming)))
        # a stored record that is stronger stays; one in the same partition is left to the merge
        staying = F.filter(locations, lambda p: (p["partition"] == new) | (p["strength"] <= strength))
        known = F.transform(
            staying, lambda p: out(p["partition"], p["file_no"], p["row"], delete | (p["partition"] != new))
        )
        here = F.exists(locations, lambda p: p["partition"] == new)
        beaten = F.size(staying) < F.size(locations)
        needed = ~here & ~beaten
    nothing = F.filter(F.array(fresh), lambda _: F.lit(False))
    inserted = F.when(needed & ~delete, F.array(fresh)).otherwise(nothing)
    if refused:
        elsewhere = F.filter(locations, lambda p: p["partition"] != new)
        message = F.concat(
            *(F.lit("the record '"), own[RECORD_KEY], F.lit("' is in the partition '"), elsewhere[0]["partition"]),
            *(F.lit("', but the incoming row belongs to '"), new, F.lit(f"', and {refused}")),
        )
        fails = F.when(~delete & (F.size(elsewhere) > 0), failure(UnsupportedTableError, message).isNull())
        inserted = F.when(F.coalesce(fails, F.lit(False)), nothing).otherwise(inserted)
    exploded = found.withColumn(_OUT, F.explode(F.concat(known, inserted)))
    replaced = {PARTITION_PATH: F.col(_OUT)["partition"], DELETE: F.col(_OUT)["delete"]}
    replaced |= _with_values(schema, kept, F.col(_OUT)["kept"])
    columns = [(replaced[name] if name in replaced else F.col(quoted([name]))).alias(name) for name in own]
    return exploded.select(*columns, F.col(_OUT)["file_no"].alias(FILE_NO), F.col(_OUT)["row"].alias(ROW))


def _values(schema: StructType, fields: tuple[str, ...]) -> Column:
    """The fields as one struct; in locations they are called otherwise."""
    names = [name if top_column(name, schema.names) in schema.names else extra_name(name) for name in fields]
    columns = (resolve(schema, name, "partition path", SchemaMismatchError)[0] for name in names)
    return F.struct(F.lit(0).alias("none"), *(column.alias(f"k{i}") for i, column in enumerate(columns)))


def _with_values(schema: StructType, fields: tuple[str, ...], values: Column) -> dict[str, Column]:
    """The columns that hold the fields, with these values in them."""
    found: dict[str, Column] = {}
    for i, name in enumerate(fields):
        if name in schema.names:
            found[name] = values[f"k{i}"]
            continue
        top = top_column(name, schema.names)
        column = found.get(top, F.col(quoted([top])))
        found[top] = column.withField(quoted(name.split(".")[1:]), values[f"k{i}"])
    return found
