"""Indexes in the metadata table: which there are and what they hold. Takes table properties and ``index.json`` and
gives definitions of secondary, expression and column statistics indexes; declares and withdraws partitions.
"""
