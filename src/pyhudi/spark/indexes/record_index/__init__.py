"""The record index on Spark. Takes the keys of a table or the changes of a write and gives the files of the index's
file groups; verifies that no key has two file groups.
"""
