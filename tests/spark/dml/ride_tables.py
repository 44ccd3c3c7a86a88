"""Tables of rides that statements change, of several kinds."""

from __future__ import annotations

from pyhudi import HudiTable

COLUMNS = "id int, city string, fare bigint, note struct<a:int,b:string>"
KEYED = {
    "hoodie.table.name": "rides",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
}
TABLES = {
    "cow": KEYED,
    "mor": {**KEYED, "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "v6-mor": {
        **KEYED,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": "6",
        "hoodie.datasource.write.precombine.field": "fare",
    },
    "keyless": {"hoodie.table.name": "rides", "hoodie.datasource.write.partitionpath.field": "city"},
    "record-index": {
        **KEYED,
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
    },
    "partitioned-index": {
        **KEYED,
        "hoodie.metadata.record.level.index.enable": "true",
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
    },
    "bucket": {**KEYED, "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "virtual-keys": {**KEYED, "hoodie.populate.meta.fields": "false"},
}
FIRST = [(1, "Oslo", 10, (1, "x")), (2, "Oslo", 20, (2, "x")), (3, "Bergen", 30, None), (4, "Moss", 40, (4, "x"))]


def frame(spark, *rows, columns=COLUMNS):
    return spark.createDataFrame(list(rows), columns)


def rows(table: HudiTable) -> list[tuple]:
    found = table.scan(columns=["id", "city", "fare", "note"]).to_arrow().to_pylist()
    return sorted((r["id"], r["city"], r["fare"], r["note"] and tuple(r["note"].values())) for r in found)


def made(spark, path, kind="cow") -> HudiTable:
    table = HudiTable.create(str(path), TABLES[kind])
    table.bulk_insert(frame(spark, *FIRST))
    return table
