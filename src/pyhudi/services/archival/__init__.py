"""Archival.

Takes the active timeline and retention rules, creates a plan, and moves its instants to the archived timeline.
"""
