"""Index lookup (tagging). Takes a keyed batch and gives each row with the file group, base file and row position of
its record, by base file keys, bloom filters or the record index.
"""
