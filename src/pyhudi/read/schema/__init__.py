"""Schemas of queries and files.

Takes the timeline, the schema history and file footers, and returns the columns of the table as of an instant and the
names and types in files.
"""
