"""Table services of the metadata table itself: compaction, cleaning and archival of its timeline."""
