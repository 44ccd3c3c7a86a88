"""Filters of loaded DataFrames. Takes a condition, text or Column, and gives a plan that leaves out the files in which
no row can meet it.
"""
