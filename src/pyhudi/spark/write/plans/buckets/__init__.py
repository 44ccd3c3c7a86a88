"""Plans of writes to tables with the bucket index: the key of a row determines its file group."""
