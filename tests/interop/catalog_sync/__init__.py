"""The sync to a Hive metastore, beside that of Apache Hudi, with a real metastore."""
