"""HFiles, the sorted key-value files of HBase that make up the metadata table.

Writes sorted keys and values to a file, and looks up keys and prefixes in one, block by block.
"""
