"""Cleaning.

Takes the cleaning policy, savepoints and file slices and adds a plan to the timeline; deletes the files that no query
reads any more, and completes the plan with the deleted files.
"""
