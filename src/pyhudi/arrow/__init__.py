"""Arrow data, independent of tables: arrays and masks, rows sorted by group, and tables as bytes."""
