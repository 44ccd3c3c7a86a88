"""Decoders of log blocks. Take the bytes of data and delete blocks in any content version, and give records and
deletes as Arrow tables.
"""
