"""Rollback of failed writes. Takes a pending instant with its markers and gives a rollback instant, with the write's
files deleted or its log blocks voided.
"""
