"""Replacement of a table by a new one.

Takes a published or failed write with the save mode overwrite, and leaves the folder with one table: the files of the
other are deleted.
"""

from __future__ import annotations
