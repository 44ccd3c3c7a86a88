"""Custom mergers.

Contains the interface of the merge mode ``CUSTOM`` and the registry of mergers, and applies mergers to pairs and
sequences of record versions.
"""
