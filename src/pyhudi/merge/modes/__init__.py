"""Built-in merge modes.

Takes versions of records with their ordering values and delete markers, and returns one version per record by commit
time or event time.
"""
