"""Bootstrap: makes a table over files that are there. Takes a folder of Parquet or ORC files and options, and gives the
plan of a bootstrap, its checks and its metadata-only half; an engine reads the rows of the other half.
"""
