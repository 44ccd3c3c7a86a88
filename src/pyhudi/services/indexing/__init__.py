"""Index builds and drops. Takes the name and options of an index and gives partitions of the metadata table, built
under the table's lock or while writers go on.
"""
