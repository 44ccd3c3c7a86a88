"""The configuration of a table. Takes ``hoodie.properties`` and options and gives typed, validated properties:
names, version, keys, partitions and merge settings; writes them for new tables.
"""
