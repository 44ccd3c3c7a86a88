"""Python data source of Apache Hudi tables. Spark 4 finds it by the name of this package, so that
``spark.read.format("hudi").load(path)`` works in sessions without :func:`pyhudi.activate`.

It supports batch reads with all query types and options of :func:`pyhudi.activate` except change data, in Arrow batches
of Python workers. Spark does not pass required columns to such a source; it passes filters from 4.1 on, if
``spark.sql.python.filterPushdown.enabled`` and the option ``pyhudi.read.pushed.filters`` are set. It appends rows
without lookup (``hoodie.datasource.write.operation=bulk_insert``), one commit per write. Such a writer cannot shuffle,
which an upsert requires: all other writes, and streams, require ``activate``, which also reads several times as fast.
"""

from pyspark_hudi.data_source import HudiDataSource

DefaultSource = HudiDataSource
"""Entry point for Spark."""

__all__ = ["DefaultSource", "HudiDataSource"]
