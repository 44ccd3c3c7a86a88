"""Worker process with one Spark session and one release of Apache Hudi, which handles requests, one JSON line each.

Started by ``oracle.Oracle`` as a plain script with the release's jar on Spark's class path (``spark.jars`` would load
Hudi's Avro classes in a second class loader, which fails with 1.0.2). Requests come on stdin, responses go to the
original stdout; everything that Spark prints goes to the log on stderr. Rows are passed as files: Parquet
in, Arrow IPC out.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType


def start(conf: dict[str, str]) -> SparkSession:
    """Start the session of this process with the given settings and little logging."""
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def to_file(df: DataFrame, path: str) -> None:
    """Collect all rows as Arrow and write them to one IPC file."""
    batches = df._collect_as_arrow()
    with pa.OSFile(path, "wb") as sink:
        schema = batches[0].schema if batches else to_arrow_schema(df.schema)
        with pa.ipc.new_file(sink, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)


class Worker:
    """The supported operations; each takes the arguments of the request and returns a JSON value."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def ping(self) -> str:
        return self.spark.version

    def write(self, path: str, rows: str, options: dict[str, str], mode: str, schema: str | None) -> None:
        """Write the Parquet file ``rows``, in its order and from one partition, to the table at ``path``. ``schema``
        (JSON) replaces the schema of Spark's Parquet reader, in which all columns are nullable."""
        df = self.spark.read.parquet(rows).coalesce(1)
        if schema is not None:
            df = self.spark.createDataFrame(df.collect(), StructType.fromJson(json.loads(schema))).coalesce(1)
        df.write.format("hudi").options(**options).mode(mode).save(path)

    def read(self, path: str, options: dict[str, str], columns: list[str] | None, where: str | None, out: str) -> str:
        """Read the table into the IPC file ``out``; return the schema as Spark's JSON."""
        df = self.spark.read.format("hudi").options(**options).load(path)
        if where:
            df = df.where(where)
        if columns:
            df = df.select(*columns)
        to_file(df, out)
        return str(df.schema.json())

    def stream(self, path: str, feed: str, schema: str, checkpoint: str, options: dict[str, str]) -> str:
        """Write the JSON files of a folder, one a micro-batch, through the streaming sink."""
        rows = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(feed)
        writer = rows.writeStream.format("hudi").options(**options).outputMode("append")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(path)
        query.awaitTermination()
        return str(query.lastProgress)

    def add_class(self, source: str, folder: str) -> None:
        """Compile a Java source by Spark's own compiler into a folder on the class path."""
        compiler = self.spark._jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(self.spark._jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(source)
        for name, code in compiler.getBytecodes().items():
            file = Path(folder, *name.split(".")).with_suffix(".class")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(code)

    def sql(self, statements: list[str], out: str) -> str:
        """Run statements; write the rows of the last one to ``out``."""
        df = None
        for statement in statements:
            df = self.spark.sql(statement)
        assert df is not None
        to_file(df, out)
        return str(df.schema.json())

    def timeline(self, path: str) -> list[dict[str, str | None]]:
        """Return the active timeline as Apache Hudi's own meta client loads it, oldest first."""
        found = []
        for instant in self._meta_client(path).getActiveTimeline().getInstants():
            old = not hasattr_java(instant, "requestedTime")
            found.append(
                {
                    "requested": instant.getTimestamp() if old else instant.requestedTime(),
                    "action": instant.getAction(),
                    "state": instant.getState().toString(),
                    "completed": None if old else instant.getCompletionTime(),
                }
            )
        return found

    def metadata_partitions(self, path: str) -> list[str]:
        """Return the partitions of the metadata table that Apache Hudi considers usable, sorted."""
        return sorted(self._meta_client(path).getTableConfig().getMetadataPartitions())

    def index(self, path: str, options: dict[str, str], schedule: list[str], instant: str | None, run: bool) -> str:
        """Plan the build of partitions of the metadata table (names of Hudi's enum), unless there is a plan at
        ``instant``, and execute the plan on request, like the HoodieIndexer; return the instant."""
        jvm = self.spark._jvm
        payload = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
        options = {"hoodie.datasource.write.payload.class": payload, **options}
        resolver = jvm.org.apache.hudi.common.table.TableSchemaResolver(self._meta_client(path))
        new = hasattr_java(resolver, "getTableSchema")
        schema = resolver.getTableSchema if new else resolver.getTableAvroSchema
        client = jvm.org.apache.hudi.DataSourceUtils.createHoodieClient(
            self.spark._jsc, schema(False).toString(), path, options["hoodie.table.name"], options
        )
        try:
            if instant is None:
                kinds = [jvm.org.apache.hudi.metadata.MetadataPartitionType.valueOf(name) for name in schedule]
                kinds = jvm.java.util.ArrayList(kinds)
                new = [m for m in client.getClass().getMethods() if m.getName() == "scheduleIndexing"]
                more = [jvm.java.util.ArrayList()] if new[0].getParameterCount() > 1 else []
                instant = client.scheduleIndexing(kinds, *more).get()
            if run:
                client.index(instant)
        finally:
            client.close()
        return str(instant)

    def define_index(self, path: str, partition: str, using: str, column: str, options: dict[str, str]) -> None:
        """Define a secondary or expression index, as the first step of CREATE INDEX does (1.2.0)."""
        jvm = self.spark._jvm
        meta = self._meta_client(path)
        versions = jvm.org.apache.hudi.metadata.HoodieIndexVersion
        builder = jvm.org.apache.hudi.common.model.HoodieIndexDefinition.newBuilder()
        builder = builder.withIndexName(partition).withIndexType(using).withSourceFields([column])
        builder = builder.withIndexFunction(options.get("expr", "identity")).withIndexOptions(options)
        builder = builder.withVersion(versions.getCurrentVersion(meta.getTableConfig().getTableVersion(), partition))
        jvm.org.apache.hudi.index.HoodieIndexUtils.register(meta, builder.build())

    def _meta_client(self, path: str) -> Any:
        jvm = self.spark._jvm
        conf = self.spark._jsc.hadoopConfiguration()
        storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(conf)
        return (
            jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(storage).setBasePath(path).build()
        )


def hasattr_java(obj: Any, method: str) -> bool:
    """Return whether a Java object has a public method of that name (py4j's own hasattr is always true)."""
    return any(m.getName() == method for m in obj.getClass().getMethods())


def cause(error: BaseException) -> str:
    """Return the chain of Java causes, first line each; Python's own traceback if no Java exception is involved."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        return "".join(traceback.format_exception(error)).strip()[-4000:]
    lines = []
    while java is not None and len(lines) < 12:
        lines.append(str(java.toString()).splitlines()[0][:600])
        java = java.getCause()
    return "\n  caused by ".join(lines)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(start(json.loads(sys.argv[1])))
    print(json.dumps({"ready": worker.ping()}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(worker, request["op"])(**request["args"])}
        except Exception as error:  # every failure is returned to the client
            answer = {"error": cause(error)}
        print(json.dumps(answer), file=answers)
    worker.spark.stop()


if __name__ == "__main__":
    main()
