"""Writes, procedures and streams that sync their table to a Hive metastore."""
