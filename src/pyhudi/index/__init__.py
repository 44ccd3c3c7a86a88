"""Bucket index of writers: the file group of a record key.

Takes record keys and returns bucket numbers or file groups. Names the files of the bucket index, and checks its
settings against keys in base files.
"""
