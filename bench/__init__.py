"""Benchmarks of pyhudi against Apache Hudi, Delta Lake, Iceberg and plain parquet on the same Spark."""
