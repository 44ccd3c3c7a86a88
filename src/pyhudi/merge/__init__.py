"""Record merging: the version of a record that counts. Takes a file slice (base file and log files) or a sorted
batch, and gives merged rows as Arrow batches. Reads, compaction and deduplication run the same kernel.
"""
