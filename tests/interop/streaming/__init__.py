"""Streams of both sides on one table."""
