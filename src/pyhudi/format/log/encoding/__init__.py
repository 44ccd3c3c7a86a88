"""Encoders of log blocks.

Encode Arrow rows and deletes as the content of data and delete blocks.
"""
