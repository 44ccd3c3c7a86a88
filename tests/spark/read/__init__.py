"""Queries of tables that exist already: plans, merge-on-read, filters, change data, tables of other writers."""
