"""Pruners, one module for each kind of index, and the lookups that they use.

A pruner takes the partitions or file slices that are left, the predicate and the metadata table, and returns a mask of
those without a matching row and a report (:mod:`pyhudi.read.pruning.pruner_protocol`).
"""
