"""Indexes of writers: the file group of a record key. Takes record keys and gives bucket numbers or file groups;
encodes and decodes the values of the record index and the files of the bucket indexes.
"""
