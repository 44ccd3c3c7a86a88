"""Mergers written by users. Holds the interface of the merge mode ``CUSTOM`` and the registry of mergers, and runs
them over pairs and runs of record versions.
"""
