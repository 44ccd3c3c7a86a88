"""Content of the entries of a table.

Takes the schema of a table and settings, and returns its entry as Hive, Trino, Athena and Spark read it.
"""
