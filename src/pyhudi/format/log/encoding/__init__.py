"""Encoders of log blocks.

Takes Arrow rows or deletes, and returns the content of a data or delete block, without its header.
"""
