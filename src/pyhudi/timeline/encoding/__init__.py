"""Encoding of commit metadata.

Converts the fields of a commit and its write stats (an Arrow table) to the bytes of its timeline file, JSON as printed
by Jackson or an Avro record, and back.
"""
