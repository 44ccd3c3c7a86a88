"""Records whose key is in another partition, for global indexes.

Takes tagged rows; returns a delete in the old partition and a row, merged with the stored one, in the new one.
"""
