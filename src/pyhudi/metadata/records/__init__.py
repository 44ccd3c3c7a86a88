"""Records of the metadata table. Takes file lists, statistics, bloom filters and locations as Arrow, and gives keys
and encoded ``HoodieMetadataRecord`` values, or decodes and combines them.
"""
