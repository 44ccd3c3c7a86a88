"""Footers of Parquet files as structs of Thrift's compact protocol.

Takes the bytes of a footer, and returns its fields by number without interpretation, so that those unknown to pyhudi
are kept when a footer is rewritten.
"""
