"""Trino, which finds tables by a sync to a Hive metastore. ``make trino`` runs these tests; others skip them."""
