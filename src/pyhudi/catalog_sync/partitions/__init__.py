"""Partitions of a table and of its entries.

Takes the partition paths of a table and the partitions of an entry, and returns the changes that make them equal.
"""
