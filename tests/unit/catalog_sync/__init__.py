"""Tests of the sync to a Hive metastore, without Java."""
