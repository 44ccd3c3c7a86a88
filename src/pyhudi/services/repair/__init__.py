"""Repairs of table metadata.

Takes the table, detects problems, and repairs them unless it is a dry run; returns an Arrow table of findings.
"""
