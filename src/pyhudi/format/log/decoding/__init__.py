"""Decoders of log blocks.

Takes the content of a data or delete block of any content version, and returns its records or deletes as an Arrow
table.
"""
