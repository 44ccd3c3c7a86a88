"""Records of the metadata table.

Encodes file lists, statistics, bloom filters and locations in Arrow to keys and ``HoodieMetadataRecord`` values;
decodes and combines them.
"""
