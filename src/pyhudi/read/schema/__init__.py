"""Schemas of a query and of files. Takes the timeline, the schema history and file footers, and gives the columns of
the table as of an instant and the names and types that files hold.
"""
