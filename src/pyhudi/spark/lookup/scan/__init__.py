"""Lookup by the keys that base files store.

Takes the columns of a batch's keys and file slices; returns the places of these keys: file, row position, and stored
values.
"""
