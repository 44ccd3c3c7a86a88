"""The file-system view.

Takes a listing of files and the timeline and returns base files and file slices as Arrow tables.
"""
