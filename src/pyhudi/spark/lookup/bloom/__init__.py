"""Lookup by key ranges and bloom filters.

Takes key texts and base files; reads the filters, and only files whose filter has some of the keys.
"""
