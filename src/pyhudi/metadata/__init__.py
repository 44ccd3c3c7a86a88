"""The metadata table in ``.hoodie/metadata``. Takes commits of the data table and gives its file lists, column
statistics, bloom filters and indexes, kept up to date within each commit. Layout and names are here; reading,
writing and services have packages of their own.
"""

from __future__ import annotations
