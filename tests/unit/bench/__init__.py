"""Tests of the benchmark report: which runs it includes, and its text."""
