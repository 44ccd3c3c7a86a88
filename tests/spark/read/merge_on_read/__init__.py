"""Queries that merge log files."""
