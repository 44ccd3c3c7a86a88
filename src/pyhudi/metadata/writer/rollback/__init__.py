"""Rollback of changes of the metadata table. Takes the rollback of a write to the table, and deletes or invalidates
what the write has recorded."""
