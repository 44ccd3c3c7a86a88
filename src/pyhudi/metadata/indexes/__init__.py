"""Indexes in the metadata table: their definitions and declarations.

Takes table properties and ``index.json`` and returns definitions of secondary, expression and column statistics
indexes; declares and withdraws partitions.
"""
