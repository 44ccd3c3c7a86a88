"""Table services of the metadata table: compaction, cleaning and archival.

Takes the metadata table after a delta commit, and the limits of the data table's options. Plans what is due, and
changes only files and instants of the metadata table.
"""
