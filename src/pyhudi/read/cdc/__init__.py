"""Change data queries: inserts, updates and deletes of each commit of a range.

Takes a table and a range, and returns a plan (`cdc_plan`) and, task by task, rows ``op``, ``ts_ms``, ``before``,
``after`` (`cdc_reader`).
"""
