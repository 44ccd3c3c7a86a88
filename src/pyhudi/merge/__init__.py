"""Record merging: selection or combination of record versions.

Takes a file slice (base file and log files) or a sorted batch, and returns merged rows as Arrow batches. Reads,
compaction and deduplication use the same kernel.
"""
