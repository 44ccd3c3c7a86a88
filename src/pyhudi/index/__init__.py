"""Indexes of writers: the file group of a record key.

Takes record keys and returns bucket numbers or file groups of the bucket index, names its files, and checks its
settings against keys in base files. Opens the record index of a table, in which others look up keys.
"""
