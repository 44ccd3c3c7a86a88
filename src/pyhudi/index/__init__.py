"""Indexes of writers: the file group of a record key.

Takes record keys and returns bucket numbers or file groups. Encodes and decodes the values of the record index and the
files of the bucket index, and checks settings of the bucket index against keys in base files.
"""
