"""Pruning of files by filters of loaded DataFrames.

Takes a condition, as text or as a Column, and plans the read again without files that cannot contain matching rows.
"""
