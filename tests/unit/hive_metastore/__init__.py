"""Tests of the client of a Hive metastore."""
