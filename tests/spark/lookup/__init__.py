"""Where the records of a batch are in a table: tagging by every index."""
