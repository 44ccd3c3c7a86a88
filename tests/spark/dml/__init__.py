"""UPDATE, DELETE and MERGE of the Python API, and what several processes do to one table at once."""
