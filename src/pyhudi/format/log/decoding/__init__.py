"""Decoders of log blocks.

Decode data and delete blocks of any content version to records and deletes in Arrow tables.
"""
