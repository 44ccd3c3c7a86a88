"""Writes to the metadata table. Takes commits and rollbacks of the data table and gives delta commits of the same
instants; initializes partitions and builds indexes while writers go on.
"""
