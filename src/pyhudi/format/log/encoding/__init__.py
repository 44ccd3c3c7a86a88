"""Encoders of log blocks. Take Arrow rows and deletes, and give the content of data and delete blocks as bytes."""
