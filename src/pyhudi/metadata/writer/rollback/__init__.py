"""Rollback of changes of the metadata table, and deletion of what its instants have written."""
