"""Python data source of Apache Hudi tables. Spark 4 finds it by the name of this package, so that
``spark.read.format("hudi").load(path)`` works in sessions that know nothing else of pyhudi.

It reads batches: every query type and option that :func:`pyhudi.activate` reads, too, but for change data, in Arrow
batches of Python workers. Spark does not tell such a source which columns it needs; it tells conditions from 4.1 on,
where ``spark.sql.python.filterPushdown.enabled`` and the option ``pyhudi.read.pushed.filters`` are set. It
appends rows as they are (``hoodie.datasource.write.operation=bulk_insert``), one commit a write. A writer of this kind
cannot shuffle, and an upsert has to: all other writes, and streams, need ``activate``, which also reads several times
as fast.
"""

from pyspark_hudi.data_source import HudiDataSource

DefaultSource = HudiDataSource
"""What Spark looks for."""

__all__ = ["DefaultSource", "HudiDataSource"]
