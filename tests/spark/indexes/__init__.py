"""Indexes of the metadata table: built, kept up by each write, used by queries."""
