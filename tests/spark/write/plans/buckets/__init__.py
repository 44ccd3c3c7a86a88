"""Writes to tables with the bucket index."""
