"""Index lookup (tagging).

Takes a keyed batch and returns its rows with the file group, base file and row position of their records. The locations
come from the keys in base files, from bloom filters or from the record index.
"""
