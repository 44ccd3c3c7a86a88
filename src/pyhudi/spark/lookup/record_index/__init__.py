"""Lookup in the record index.

Takes key texts; returns the file groups that the index has for them.
"""
