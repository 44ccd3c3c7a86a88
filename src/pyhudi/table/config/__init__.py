"""Configuration of a table.

Takes ``hoodie.properties`` and options and returns typed, validated properties: names, version, keys, partitions and
merge settings. Writes them for new tables.
"""
