"""The metadata table in ``.hoodie/metadata``.

Takes commits of the data table and maintains its file lists, column statistics, bloom filters and indexes within each
commit. This package has layout and names; subpackages have reading, writing and services.
"""

from __future__ import annotations
