"""Work of each engine: its own idiom, its own defaults, the same data, keys and partition column.

Nothing is tuned; what every engine gets alike stands in ``COMMON``. Rows match by partition and key: Apache Hudi and
pyhudi do so with their default (not global) index, the others get the same three columns in the condition of MERGE. No
engine gets an ordering column: the later write wins, as in a plain MERGE.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from bench.data import KEYS, PARTITION, POINT
from bench.jars import class_path

COMMON = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


class Engine(ABC):
    """One engine in one process. ``folder`` is where its tables live; paths name a table's folder below it."""

    label = ""
    jars: str | None = None
    can_upsert = True
    bucket_options: ClassVar[Mapping[str, str] | None] = None
    """Write options of a table with the bucket index; None: the engine has no such thing."""
    record_options: ClassVar[Mapping[str, str] | None] = None
    """The same for the record index."""
    merge_on_read_properties: ClassVar[Mapping[str, str]] = {}
    """Table properties with which updates leave data files as they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index: Mapping[str, str] = {}
        self.spark: SparkSession

    def conf(self) -> dict[str, str]:
        """Spark settings beyond ``COMMON``."""
        return {}

    def start(self, builder: Any) -> None:
        """Start Spark from a builder that has all settings."""
        self.spark = builder.getOrCreate()

    @abstractmethod
    def bulk_insert(self, df: DataFrame, path: Path, *, merge_on_read: bool = False) -> None:
        """Write a new table. ``merge_on_read``: one whose updates leave data files as they are."""

    @abstractmethod
    def upsert(self, df: DataFrame, path: Path) -> None:
        """Update the rows whose keys are there and insert the others, in the way of the table."""

    @abstractmethod
    def read(self, path: Path) -> DataFrame:
        """The current rows."""

    def find(self, path: Path, order: int, line: int) -> DataFrame:
        """The row of a key, found by whatever index there is."""
        return self.read(path).where((col("l_orderkey") == order) & (col("l_linenumber") == line))

    def find_alone(self, path: Path, order: int, line: int) -> list[list[str]] | None:
        """The same without Spark; None where there is no way."""
        del path, order, line
        return None

    def compact(self, path: Path) -> None:
        """Put what merge-on-read upserts have left into data files."""
        raise TypeError(f"{self.label} has nothing to compact: {path}")

    def read_optimized(self, path: Path) -> DataFrame | None:
        """The rows of data files alone, without later deltas; None where there is no such query."""
        del path
        return None

    def copy(self, source: Path, target: Path) -> Path:
        """A fresh table like ``source`` for one repetition: at ``target``, or where the engine can have it."""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        return target


class Parquet(Engine):
    """Plain files: the floor that a table format stands on."""

    label = "plain parquet"
    can_upsert = False

    def bulk_insert(self, df: DataFrame, path: Path, *, merge_on_read: bool = False) -> None:
        del merge_on_read  # files are files
        df.write.partitionBy(PARTITION).parquet(str(path))

    def upsert(self, df: DataFrame, path: Path) -> None:
        del df, path
        raise TypeError("plain parquet files have no upsert")

    def read(self, path: Path) -> DataFrame:
        return self.spark.read.parquet(str(path))


class HudiDataFrames(Engine):
    """Common part of Apache Hudi and pyhudi: Apache Hudi's DataFrame API."""

    bucket_options: ClassVar[Mapping[str, str] | None] = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "4",
    }  # 28 in all

    record_options: ClassVar[Mapping[str, str] | None] = {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
    }

    def bulk_insert(self, df: DataFrame, path: Path, *, merge_on_read: bool = False) -> None:
        self._write(df, path, "bulk_insert", "overwrite", merge_on_read)

    def upsert(self, df: DataFrame, path: Path) -> None:
        properties = (path / ".hoodie" / "hoodie.properties").read_text()
        self._write(df, path, "upsert", "append", "MERGE_ON_READ" in properties)

    def read(self, path: Path) -> DataFrame:
        return self.spark.read.format("hudi").load(str(path))

    def read_optimized(self, path: Path) -> DataFrame | None:
        optimized = {"hoodie.datasource.query.type": "read_optimized"}
        return self.spark.read.format("hudi").options(**optimized).load(str(path))

    def _write(self, df: DataFrame, path: Path, operation: str, mode: str, merge_on_read: bool) -> None:
        options = {
            "hoodie.table.name": "lineitem",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": ",".join(KEYS),
            "hoodie.datasource.write.partitionpath.field": PARTITION,
            "hoodie.datasource.write.operation": operation,
            **self.index,
            # both compact after five commits by themselves; what deltas cost is to be seen
            "hoodie.compact.inline.max.delta.commits": "1000",
        }
        df.write.format("hudi").options(**options).mode(mode).save(str(path))


class Ours(HudiDataFrames):
    """pyhudi of this checkout."""

    label = "pyhudi"

    def start(self, builder: Any) -> None:
        import pyhudi

        super().start(pyhudi.configure_spark(builder))
        pyhudi.activate(self.spark)

    def find(self, path: Path, order: int, line: int) -> DataFrame:
        from pyhudi import HudiTable

        key = f"l_orderkey:{order},l_linenumber:{line}"
        return HudiTable.for_path(str(path)).scan([("_hoodie_record_key", "=", key)]).to_spark(self.spark)

    def find_alone(self, path: Path, order: int, line: int) -> list[list[str]] | None:
        from pyhudi import HudiTable

        found = HudiTable.for_path(str(path)).lookup([f"l_orderkey:{order},l_linenumber:{line}"], list(POINT))
        return sorted([str(cell) for cell in row.values()] for row in found.to_pylist())

    def compact(self, path: Path) -> None:
        from pyhudi import HudiTable

        HudiTable.for_path(str(path)).services.compact(spark=self.spark)


class ApacheHudi(HudiDataFrames):
    """The JVM original, with the settings its documentation asks for."""

    label = "Apache Hudi 1.2.0"
    jars = "hudi-1.2.0"

    def conf(self) -> dict[str, str]:
        return {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        }

    def compact(self, path: Path) -> None:
        self.spark.sql("SET hoodie.compact.inline.max.delta.commits=1")
        self.spark.sql(f"CALL run_compaction(op => 'scheduleAndExecute', path => '{path}')").collect()


class Merging(Engine):
    """Engines whose upsert is SQL MERGE."""

    def upsert(self, df: DataFrame, path: Path) -> None:
        df.createOrReplaceTempView("corrections")
        condition = " AND ".join(f"t.{name} = s.{name}" for name in (*KEYS, PARTITION))
        self.spark.sql(
            f"MERGE INTO {self._name(path)} t USING corrections s ON {condition} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    @abstractmethod
    def _name(self, path: Path) -> str:
        """The table in SQL."""


class Delta(Merging):
    """Delta Lake."""

    label = "Delta 3.3.2"
    jars = "delta-3.3.2"
    merge_on_read_properties: ClassVar[Mapping[str, str]] = {"delta.enableDeletionVectors": "true"}

    def conf(self) -> dict[str, str]:
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }

    def bulk_insert(self, df: DataFrame, path: Path, *, merge_on_read: bool = False) -> None:
        properties = self.merge_on_read_properties if merge_on_read else {}
        df.write.format("delta").options(**properties).partitionBy(PARTITION).save(str(path))

    def read(self, path: Path) -> DataFrame:
        return self.spark.read.format("delta").load(str(path))

    def compact(self, path: Path) -> None:
        self.spark.sql(f"OPTIMIZE {self._name(path)}").collect()

    def _name(self, path: Path) -> str:
        return f"delta.`{path}`"


class Iceberg(Merging):
    """Apache Iceberg in a Hadoop catalog. Its metadata holds absolute paths, so a copy must live where the table was
    made."""

    label = "Iceberg 1.10.0"
    jars = "iceberg-1.10.0"
    merge_on_read_properties: ClassVar[Mapping[str, str]] = {
        "format-version": "2",
        **{f"write.{operation}.mode": "merge-on-read" for operation in ("merge", "update", "delete")},
    }

    def conf(self) -> dict[str, str]:
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.bench.type": "hadoop",
            "spark.sql.catalog.bench.warehouse": str(self.folder),
            "spark.sql.catalog.bench.cache-enabled": "false",
        }

    def bulk_insert(self, df: DataFrame, path: Path, *, merge_on_read: bool = False) -> None:
        writer = df.writeTo(self._name(path)).partitionedBy(df[PARTITION])
        for key, value in self.merge_on_read_properties.items() if merge_on_read else ():
            writer = writer.tableProperty(key, value)
        writer.create()

    def read(self, path: Path) -> DataFrame:
        return self.spark.table(self._name(path))

    def compact(self, path: Path) -> None:
        name = ".".join(path.relative_to(self.folder).parts)
        options = "map('delete-file-threshold', '1', 'rewrite-all', 'true')"
        self.spark.sql(f"CALL bench.system.rewrite_data_files(table => '{name}', options => {options})").collect()

    def copy(self, source: Path, target: Path) -> Path:
        del target
        kept = self.folder / "kept" / source.name
        if kept.exists():
            shutil.rmtree(source)
            shutil.copytree(kept, source)
        else:
            shutil.copytree(source, kept)
        return source

    def _name(self, path: Path) -> str:
        return "bench." + ".".join(f"`{part}`" for part in path.relative_to(self.folder).parts)


ENGINES: dict[str, type[Engine]] = {
    "parquet": Parquet,
    "ours": Ours,
    "hudi": ApacheHudi,
    "delta": Delta,
    "iceberg": Iceberg,
}


def settings(engine: Engine, memory: str) -> dict[str, str]:
    """All Spark settings of an engine's process; ``memory`` is the driver's, which in local mode does the work."""
    conf = {**COMMON, "spark.driver.memory": memory, **engine.conf()}
    if engine.jars:
        jars = class_path(engine.jars)
        conf |= {"spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars}
    return conf
