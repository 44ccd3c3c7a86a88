"""Cleaning: deletes the files of file slices that no query reads any more."""
