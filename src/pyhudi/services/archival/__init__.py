"""Archival: moves old instants of a table from its active timeline into its history."""
