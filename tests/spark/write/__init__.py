"""Write operations: their results, merging, log files, failures, refused input."""
