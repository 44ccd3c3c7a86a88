"""Schemas of queries.

Takes the timeline, the schema history and file footers, and returns the columns of the table as of an instant, and
paths of nested columns in them.
"""
