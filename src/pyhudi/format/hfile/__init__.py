"""HFiles, the sorted key-value files of HBase that the metadata table is made of. Takes sorted keys and values and
gives a file; looks up keys and prefixes in one, block by block.
"""
