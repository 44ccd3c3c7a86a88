"""Table services of the metadata table: compaction, cleaning and archival.

Takes the metadata table after a delta commit, and the limits of the data table's options. Plans services that are due,
and changes only files and instants of the metadata table. Rules and plans are those of any table's services
(`pyhudi.timeline.delta_commits`, `pyhudi.table.clean_retention`, `pyhudi.timeline.archive.archiver`); the runners are
separate, because they work within the lock of a commit and merge streams of HFiles (ADR 36).
"""
