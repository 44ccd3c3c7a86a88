"""Rollback of failed writes.

Takes a pending instant with its markers, deletes the files of the write or rolls back its log blocks, and creates a
rollback instant.
"""
