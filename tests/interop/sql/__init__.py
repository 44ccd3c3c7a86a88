"""SQL statements on both sides, and a Hive metastore that both use."""
